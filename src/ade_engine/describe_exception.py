"""Describe an exception within limits, whatever its own methods do.

The exception comes from the code of a job and may be hostile.
"""

import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

MESSAGE_CHARS_MAX = 2_000
NAME_CHARS_MAX = 300
NUMBER_MAX = 2**53
BASES_MAX = 10
TRACEBACK_CHARS_MAX = 8_000
FRAMES_MAX = 50
CHAIN_MAX = 5
ENGINE = os.path.dirname(os.path.abspath(__file__)) + os.sep
INSTALLED = os.path.dirname(ENGINE.rstrip(os.sep))
FROZEN = "<frozen "
Value = TypeVar("Value")


def describe(error: BaseException) -> dict[str, Any]:
    """Return what is needed to classify an exception and to show it to a person.

    Nothing that the exception offers is trusted: its methods may raise, its attributes may hold
    anything, and checks of a type look at `type(value)`, because an object can lie about its class.
    """
    kind = type(error)
    facts: dict[str, Any] = {
        "type": _or_none(lambda: _name(kind)) or "Exception",
        "bases": [_text(base.__name__) for base in type.mro(kind)[:BASES_MAX]],
        "message": _message(error),
        "errno": _or_none(lambda: _number(error.errno)) if issubclass(kind, OSError) else None,  # type: ignore[attr-defined]
        **(_or_none(lambda: _system_errors(error)) or {}),
        "module": _or_none(lambda: _text(error.name)) if issubclass(kind, ImportError) else None,  # type: ignore[attr-defined]
        "traceback": _traceback(error),
    }
    facts.update(_or_none(lambda: _position(error)) or {})
    if declared := _or_none(lambda: _declared(error)):
        facts["declared"] = declared
    return facts


def _system_errors(error: BaseException) -> dict[str, Any]:
    """Return the errno of each operating system error that an exception was raised for.

    Libraries wrap such an error: with `from`, in an OSError of their own, or as the argument of
    another exception. Otherwise the context of an exception is not its reason: it was handled, and
    then something else failed.
    """
    numbers: list[int] = []
    is_lookup = False
    link: BaseException | None = error
    for _ in range(CHAIN_MAX):
        if link is None:
            break
        is_os_error = issubclass(type(link), OSError)
        if is_os_error and (number := _number(link.errno)) is not None:  # type: ignore[attr-defined]
            numbers.append(number)
        is_lookup = is_lookup or type(link).__name__ == "gaierror"
        cause, context = (_member(link, name) for name in ("__cause__", "__context__"))
        is_wrapped = is_os_error or any(part is context for part in _member(link, "args"))
        link = cause or (context if is_wrapped else None)
    return {"errnos": numbers, "is_name_lookup": is_lookup}


def _member(error: BaseException, name: str) -> Any:
    """Read a member of BaseException: a subclass may define an attribute of the same name."""
    return BaseException.__dict__[name].__get__(error)


def _or_none(read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except BaseException:
        return None


def _text(value: object) -> str | None:
    """Return a string as a bounded `str`, and None for anything else."""
    return str.__str__(value)[:NAME_CHARS_MAX] if issubclass(type(value), str) else None


def _number(value: object) -> int | None:
    """Return an `int` of moderate size, and None for anything else."""
    return value if type(value) is int and abs(value) < NUMBER_MAX else None


def _declared(error: BaseException) -> dict[str, Any] | None:
    """Return the job error that an exception class of the engine declares."""
    code, category = getattr(error, "code", None), getattr(error, "category", None)
    if not _is_engine_file(_module_file(type(error))) or not isinstance(code, str):
        return None
    details = getattr(error, "details", None)
    return {
        "category": category,
        "code": code,
        "message": _message(error),
        "details": details() if callable(details) else {},
    }


def _module_file(kind: type) -> str:
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or ""


def _name(kind: type) -> str:
    module, name = _text(kind.__module__), _text(kind.__qualname__) or "Exception"
    return name if module in {None, "builtins", "__main__"} else f"{module}.{_text(kind.__name__)}"


def _message(error: BaseException) -> str:
    try:
        return str.__str__(str(error))[:MESSAGE_CHARS_MAX]
    except BaseException as raised:
        return f"[the message could not be read: {type(raised).__name__}]"


def _traceback(error: BaseException) -> str:
    try:
        whole = traceback.TracebackException.from_exception(error, limit=-FRAMES_MAX)
        _drop_engine_frames(whole)
        text = _without_prefixes("".join(whole.format(chain=True)))
    except BaseException as raised:
        return f"[the traceback could not be read: {type(raised).__name__}]"
    if len(text) <= TRACEBACK_CHARS_MAX:
        return text
    half = TRACEBACK_CHARS_MAX // 2
    return f"{text[:half]}\n[traceback cut]\n{text[-half:]}"


def _without_prefixes(text: str) -> str:
    """Shorten the paths of files of the interpreter and of the job."""
    folders = {sys.prefix, sys.base_prefix, _job_folder().rstrip(os.sep), INSTALLED}
    for prefix in sorted(folders, key=len)[::-1]:
        text = text.replace(prefix + os.sep, "")
    return text


def _drop_engine_frames(exception: traceback.TracebackException) -> None:
    """Drop the frames of the engine, so that a traceback begins in the code of the job."""
    link: traceback.TracebackException | None = exception
    for length in range(1, CHAIN_MAX + 1):
        if link is None:
            return
        own = _job_frames(link)
        if own or hasattr(link, "lineno"):  # a SyntaxError has no frame in the job's code
            link.stack[:] = own
        deeper = link.__cause__ or link.__context__
        if length == CHAIN_MAX:
            link.__cause__ = link.__context__ = None
        link = deeper


def _job_frames(exception: traceback.TracebackException) -> list[traceback.FrameSummary]:
    """Return the frames of the job's code and of what it called."""
    frames = [frame for frame in exception.stack if not _is_engine_file(frame.filename)]
    while frames and not _is_job_file(frames[0].filename):
        frames.pop(0)
    return frames


def _is_engine_file(filename: str) -> bool:
    """Tell whether a file belongs to the engine or the interpreter, and not to the job."""
    return filename.startswith((ENGINE, FROZEN))


def _position(error: BaseException) -> dict[str, Any]:
    """Return file, line and column of the innermost frame in the code of the job."""
    if issubclass(type(error), SyntaxError):
        syntax: Any = error
        if (line := _number(syntax.lineno)) is not None:
            file = _relative(_text(syntax.filename) or "")
            return {"file": file, "line": line, "column": _number(syntax.offset) or 1}
    position: dict[str, Any] = {}
    step: TracebackType | None = _member(error, "__traceback__")
    while step is not None:
        code = step.tb_frame.f_code
        if _is_job_file(code.co_filename):
            positions = list(code.co_positions())
            index = step.tb_lasti // 2
            column = positions[index][2] if index < len(positions) else None
            position = {
                "file": _relative(code.co_filename)[:NAME_CHARS_MAX],
                "line": step.tb_lineno,
                "column": None if column is None else column + 1,
                "function": code.co_name[:NAME_CHARS_MAX],
            }
        step = step.tb_next
    return position


def _is_job_file(filename: str) -> bool:
    if _is_engine_file(filename):
        return False
    return filename.startswith(("<", _job_folder())) or not os.path.isabs(filename)


def _job_folder() -> str:
    return os.environ.get("ADE_JOB_FOLDER", os.getcwd()) + os.sep


def _relative(filename: str) -> str:
    return filename.removeprefix(_job_folder())
