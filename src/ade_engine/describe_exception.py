"""Say what an exception was, in bounded words, whatever its own methods do."""

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
RUNTIME = os.path.dirname(os.path.abspath(__file__)) + os.sep
INSTALLED = os.path.dirname(RUNTIME.rstrip(os.sep))
FROZEN = "<frozen "
Found = TypeVar("Found")


def describe(error: BaseException) -> dict[str, Any]:
    """Return the facts about an exception that a judge and a person need.

    Nothing that the exception offers is trusted: its methods may raise, its attributes may be
    anything, and the kind of an object is asked of the object's type, never of the object.
    """
    kind = type(error)
    told: dict[str, Any] = {
        "type": _quietly(lambda: _name(kind)) or "Exception",
        "bases": [_text(base.__name__) for base in type.mro(kind)[:BASES_MAX]],
        "message": _message(error),
        "errno": _quietly(lambda: _number(error.errno)) if issubclass(kind, OSError) else None,  # type: ignore[attr-defined]
        "module": _quietly(lambda: _text(error.name)) if issubclass(kind, ImportError) else None,  # type: ignore[attr-defined]
        "traceback": _shown(error),
    }
    told.update(_quietly(lambda: _place(error)) or {})
    if declared := _quietly(lambda: _declared(error)):
        told["declared"] = declared
    return told


def _quietly(ask: Callable[[], Found]) -> Found | None:
    try:
        return ask()
    except BaseException:
        return None


def _text(value: object) -> str | None:
    """Return a string as a plain and bounded one; anything else is nothing."""
    return str.__str__(value)[:NAME_CHARS_MAX] if issubclass(type(value), str) else None


def _number(value: object) -> int | None:
    """Return a small whole number as a plain one; anything else is nothing."""
    return value if type(value) is int and abs(value) < NUMBER_MAX else None


def _declared(error: BaseException) -> dict[str, Any] | None:
    """Return what an error of the runtime's own says of itself, in the words of a job's error."""
    code, category = getattr(error, "code", None), getattr(error, "category", None)
    if not is_runtime(_module_file(type(error))) or not isinstance(code, str):
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
    except BaseException as unspeakable:
        return f"[the message could not be made: {type(unspeakable).__name__}]"


def _shown(error: BaseException) -> str:
    try:
        whole = traceback.TracebackException.from_exception(error, limit=-FRAMES_MAX)
        _forget_runtime(whole)
        text = _without_prefixes("".join(whole.format(chain=True)))
    except BaseException as unspeakable:
        return f"[the traceback could not be made: {type(unspeakable).__name__}]"
    if len(text) <= TRACEBACK_CHARS_MAX:
        return text
    half = TRACEBACK_CHARS_MAX // 2
    return f"{text[:half]}\n[traceback cut]\n{text[-half:]}"


def _without_prefixes(text: str) -> str:
    """Show files of the interpreter and of the job without the folders that they lie in."""
    folders = {sys.prefix, sys.base_prefix, _folder().rstrip(os.sep), INSTALLED}
    for prefix in sorted(folders, key=len)[::-1]:
        text = text.replace(prefix + os.sep, "")
    return text


def _forget_runtime(shown: traceback.TracebackException) -> None:
    """Leave out the runtime's own frames: the first line shown is the first of the job's code."""
    link: traceback.TracebackException | None = shown
    for length in range(1, CHAIN_MAX + 1):
        if link is None:
            return
        own = _jobs_own(link)
        if own or hasattr(link, "lineno"):  # what cannot be parsed has no frame of its own
            link.stack[:] = own
        deeper = link.__cause__ or link.__context__
        if length == CHAIN_MAX:
            link.__cause__ = link.__context__ = None
        link = deeper


def _jobs_own(shown: traceback.TracebackException) -> list[traceback.FrameSummary]:
    """Keep the frames of the job's code and of what it called."""
    frames = [frame for frame in shown.stack if not is_runtime(frame.filename)]
    while frames and not _is_the_jobs(frames[0].filename):
        frames.pop(0)
    return frames


def is_runtime(filename: str) -> bool:
    """Tell whether a file is the runtime's and not the job's."""
    return filename.startswith((RUNTIME, FROZEN))


def _place(error: BaseException) -> dict[str, Any]:
    """Return file, line and column of the last place in the job's own code."""
    if issubclass(type(error), SyntaxError):
        syntax: Any = error
        if (line := _number(syntax.lineno)) is not None:
            file = _short(_text(syntax.filename) or "")
            return {"file": file, "line": line, "column": _number(syntax.offset) or 1}
    place: dict[str, Any] = {}
    # Of the exception itself: a class may offer another under the same name.
    step: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    while step is not None:
        code = step.tb_frame.f_code
        if _is_the_jobs(code.co_filename):
            positions = list(code.co_positions())
            at = step.tb_lasti // 2
            column = positions[at][2] if at < len(positions) else None
            place = {
                "file": _short(code.co_filename)[:NAME_CHARS_MAX],
                "line": step.tb_lineno,
                "column": None if column is None else column + 1,
                "function": code.co_name[:NAME_CHARS_MAX],
            }
        step = step.tb_next
    return place


def _is_the_jobs(filename: str) -> bool:
    if is_runtime(filename):
        return False
    return filename.startswith(("<", _folder())) or not os.path.isabs(filename)


def _folder() -> str:
    return os.environ.get("ADE_JOB_FOLDER", os.getcwd()) + os.sep


def _short(filename: str) -> str:
    return filename.removeprefix(_folder())
