"""Say what an exception was, in bounded words, whatever its own methods do."""

import os
import sys
import traceback
from types import TracebackType
from typing import Any

MESSAGE_CHARS_MAX = 2_000
TRACEBACK_CHARS_MAX = 8_000
FRAMES_MAX = 50
CHAIN_MAX = 5
RUNTIME = os.path.dirname(os.path.abspath(__file__)) + os.sep
FROZEN = "<frozen "


def describe(error: BaseException) -> dict[str, Any]:
    """Return the facts about an exception that a judge and a person need."""
    told: dict[str, Any] = {
        "type": _name(type(error)),
        "bases": [base.__name__ for base in type(error).__mro__[:10]],
        "message": _message(error),
        "errno": error.errno if isinstance(error, OSError) else None,
        "module": error.name if isinstance(error, ImportError) else None,
        "traceback": _shown(error),
    }
    told.update(_place(error))
    if (declared := _declared(error)) is not None:
        told["declared"] = declared
    return told


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
    module = kind.__module__
    return kind.__qualname__ if module in {"builtins", "__main__"} else f"{module}.{kind.__name__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE_CHARS_MAX]
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
    for prefix in sorted({sys.prefix, sys.base_prefix, _folder().rstrip(os.sep)}, key=len)[::-1]:
        text = text.replace(prefix + os.sep, "")
    return text


def _forget_runtime(shown: traceback.TracebackException) -> None:
    """Leave out the runtime's own frames: the first line shown is the first of the job's code."""
    link: traceback.TracebackException | None = shown
    for length in range(1, CHAIN_MAX + 1):
        if link is None:
            return
        link.stack[:] = [f for f in link.stack if not is_runtime(f.filename)] or link.stack
        deeper = link.__cause__ or link.__context__
        if length == CHAIN_MAX:
            link.__cause__ = link.__context__ = None
        link = deeper


def is_runtime(filename: str) -> bool:
    """Tell whether a file is the runtime's and not the job's."""
    return filename.startswith((RUNTIME, FROZEN))


def _place(error: BaseException) -> dict[str, Any]:
    """Return file, line and column of the last place in the job's own code."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return {"file": error.filename, "line": error.lineno, "column": error.offset or 1}
    place: dict[str, Any] = {}
    step: TracebackType | None = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if _is_the_jobs(code.co_filename):
            positions = list(code.co_positions())
            at = step.tb_lasti // 2
            column = positions[at][2] if at < len(positions) else None
            place = {
                "file": _short(code.co_filename),
                "line": step.tb_lineno,
                "column": None if column is None else column + 1,
                "function": code.co_name,
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
