"""Classify how a child ended: by what the kernel and the supervisor saw, then by its messages.

The first rule that matches decides. A child is trusted about the value that its code returned and
the exception that it raised; its end, its limits and the calls that it was denied are observed from
outside.
"""

import errno
import os
import signal
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ade.domain.limits import Limits
from ade.domain.outcome import Category, CodeLocation, JobError, located

NEARLY = 0.97
NEARLY_ALL_CPU = 0.9  # the kernel and the supervisor do not measure at the same moments
DETAILS_CHARS_MAX = 24_000
DETAILS_DEPTH_MAX = 4
DETAIL_NAME_CHARS_MAX = 100
# A tuple: a child may send an unhashable value, which a set refuses.
DENIED_NUMBERS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENETUNREACH, errno.ENOSYS)
FULL = {errno.ENOSPC, errno.EDQUOT}
ALLOCATION_FAILED = ("memory allocation of", "bad_alloc", "cannot allocate memory")
DETAILS = ("file", "line", "column", "function", "traceback", "type")
VIOLATIONS_SHOWN_MAX = 20
LINE_MAX = 10**9
MESSAGE_CHARS_MAX = 2_000


@dataclass(slots=True)
class ExitObservation:
    """Hold what was observed of a child from outside, and its messages."""

    status: int
    limits: Limits
    killed_for: JobError | None = None
    was_killed_by_memory_limit: bool = False
    cpu_ms: int = 0
    memory_mb_peak: int = 0
    violations: list[str] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    stderr: str = ""


def classify_exit(seen: ExitObservation) -> JobError | None:
    """Return what went wrong; None if the job succeeded."""
    error = (
        seen.killed_for
        or _killed_by_kernel(seen)
        or _crashed(seen)
        or _failed(seen)
        or _without_result(seen)
    )
    if error is not None and seen.violations and not _is_unrelated(error):
        error.details["refused"] = seen.violations[:VIOLATIONS_SHOWN_MAX]
    return error


def _is_unrelated(error: JobError) -> bool:
    """Tell whether an error has a reason of its own, so that no refused call is behind it."""
    has_reason = "type" in error.details or "exception" in error.details
    return has_reason and error.category is not Category.SANDBOX_VIOLATION


def bounded_details(details: dict[str, Any]) -> dict[str, Any]:
    """Copy the details that a child sends about its error, bounded in size and of known types."""
    room = [DETAILS_CHARS_MAX]
    kept = _kept(details, room, DETAILS_DEPTH_MAX)
    for name in ("line", "column"):
        if not isinstance(kept.get(name, 1), int):
            del kept[name]
    return cast(dict[str, Any], kept)


def _kept(value: Any, room: list[int], depth: int) -> Any:
    """Copy a value as far as there is room; what is too deep or too long is dropped."""
    room[0] -= len(value) + 1 if isinstance(value, str) else 8
    if isinstance(value, str):
        return value if room[0] > 0 else value[: max(0, room[0] + len(value))]
    if depth == 0 or room[0] <= 0 or not isinstance(value, dict | list):
        return value if value is None or isinstance(value, int | float) else None
    if isinstance(value, list):
        return [_kept(item, room, depth - 1) for item in value if room[0] > 0]
    return {
        name[:DETAIL_NAME_CHARS_MAX]: _kept(item, room, depth - 1)
        for name, item in value.items()
        if room[0] > 0 and isinstance(name, str)
    }


def limit_error(code: str, message: str, **details: Any) -> JobError:
    """Return the error of a job that exceeded one of its limits."""
    return JobError(Category.RESOURCE_LIMIT, code, message, details)


def memory_error(limits: Limits) -> JobError:
    """Return the error of a job that exceeded its memory limit."""
    message = f"The job used more than its {limits.memory_mb} MiB of memory."
    return limit_error("MEMORY_LIMIT", message, memory_mb=limits.memory_mb)


def cpu_error(limits: Limits) -> JobError:
    """Return the error of a job that exceeded its CPU time."""
    message = f"The job used more than {limits.cpu_ms / 1000:g} s of CPU time."
    return limit_error("CPU_LIMIT", message, cpu_ms=limits.cpu_ms)


def stopped_error() -> JobError:
    """Return the error of a job that the worker ended; the worker replaces it by its reason."""
    return JobError(Category.INTERNAL_ERROR, "STOPPED", "The worker ended the job.")


def _killed_by_kernel(seen: ExitObservation) -> JobError | None:
    if seen.was_killed_by_memory_limit:
        return memory_error(seen.limits)
    if not os.WIFSIGNALED(seen.status):
        return None
    number = os.WTERMSIG(seen.status)
    used_up = seen.cpu_ms >= NEARLY_ALL_CPU * seen.limits.cpu_ms
    if number == signal.SIGXCPU or (number == signal.SIGKILL and used_up):
        return cpu_error(seen.limits)
    if number == signal.SIGXFSZ:
        return _file_error()
    if number == signal.SIGSYS:
        return _refused(seen, "The job made a system call of another processor architecture.")
    if number == signal.SIGKILL:
        message = "The operating system killed the job; most often the machine ran out of memory."
        return limit_error("KILLED_BY_OS", message)
    return None


def _crashed(seen: ExitObservation) -> JobError | None:
    if not os.WIFSIGNALED(seen.status):
        return None
    name = _signal_name(os.WTERMSIG(seen.status))
    if _ran_out_of_memory(seen):
        return memory_error(seen.limits)
    message = f"The job was ended by {name}."
    return JobError(Category.USER_CODE_ERROR, "KILLED_BY_SIGNAL", message, {"signal": name})


def _ran_out_of_memory(seen: ExitObservation) -> bool:
    last_lines = seen.stderr[-2000:].lower()
    near = seen.memory_mb_peak >= NEARLY * seen.limits.memory_mb
    return near or any(text in last_lines for text in ALLOCATION_FAILED)


def _failed(seen: ExitObservation) -> JobError | None:
    """Classify the exception that the child reported."""
    failures = [message["failure"] for message in seen.messages if "failure" in message]
    if not failures:
        return None
    failure = failures[-1]
    if not isinstance(failure, dict):
        return _undescribed()
    if "exit" in failure:
        return _exited(failure["exit"], failure.get("exit_message"))
    if "result_not_json" in failure:
        return JobError(
            Category.USER_CODE_ERROR, "BAD_RESULT", str(failure["result_not_json"])[:500]
        )
    if "result_too_deep" in failure:
        message = f"The result is nested deeper than {failure['result_too_deep']} levels."
        return limit_error("RESULT_TOO_DEEP", message[:200])
    if not isinstance(failure.get("type"), str):
        return _undescribed()
    declared = failure.get("declared")
    is_refusal = _is_refusal(seen, failure)
    if isinstance(declared, dict) and (error := _declared(seen, declared, is_refusal)) is not None:
        return error
    return _exception(seen, failure)


def _is_refusal(seen: ExitObservation, failure: dict[str, Any]) -> bool:
    """Tell whether an exception, or what it was raised for, is an operation that was denied.

    That some call was refused earlier says nothing: most libraries try things and do without.
    """
    numbers = failure.get("errnos")
    found = (
        [*numbers, failure.get("errno")] if isinstance(numbers, list) else [failure.get("errno")]
    )
    if any(number in DENIED_NUMBERS for number in found):
        return True
    # Without network, looking up a name fails with an error of the C library.
    return failure.get("is_name_lookup") is True and any(
        name.startswith("socket ") for name in seen.violations
    )


def _declared(seen: ExitObservation, declared: dict[str, Any], is_refusal: bool) -> JobError | None:
    """Take an error that the job declared itself; it may not claim a failure of ADE."""
    try:
        category = Category(declared.get("category") or Category.VALIDATION_ERROR)
        code = str(declared["code"]).upper()[:100]
        message = str(declared["message"])[:2000]
        details = bounded_details(dict(declared["details"]))
    except (KeyError, TypeError, ValueError):
        return None
    if code == "OUT_OF_MEMORY" or details.get("exception") == "MemoryError":
        return located(memory_error(seen.limits), _location(details))
    if (limited := _file_limit(details.get("errno"), message, details)) is not None:
        return limited
    if category in (Category.INTERNAL_ERROR, Category.SANDBOX_VIOLATION):
        category = Category.USER_CODE_ERROR
    is_refusal = is_refusal or details.get("errno") in DENIED_NUMBERS
    if category is Category.USER_CODE_ERROR and is_refusal:
        return _refused(seen, message, **details)
    return JobError(category, code, message, details)


def _exception(seen: ExitObservation, failure: dict[str, Any]) -> JobError:
    given = failure.get("bases")
    bases = given if isinstance(given, list) else []
    message = f"{failure['type']}: {failure.get('message', '')}"[:2000].rstrip(": ")
    reported = {name: failure[name] for name in DETAILS if failure.get(name) is not None}
    details = bounded_details(reported)
    number = failure.get("errno") if isinstance(failure.get("errno"), int) else None
    if "MemoryError" in bases:
        return located(memory_error(seen.limits), _location(details))
    if "can't start new thread" in message or (number == errno.EAGAIN and "OSError" in bases):
        return limit_error(
            "PROCESS_LIMIT", f"The job started too many processes or threads: {message}", **details
        )
    if (limited := _file_limit(number, message, details)) is not None:
        return limited
    if "ModuleNotFoundError" in bases:
        module = str(failure.get("module") or "?")
        text = f"The module {module!r} is not installed in the job's environment."
        details["module"] = module
        return JobError(Category.DEPENDENCY_ERROR, "MODULE_NOT_FOUND", text, details)
    if _is_refusal(seen, failure):
        return _refused(seen, message, **details)
    return JobError(Category.USER_CODE_ERROR, "PYTHON_EXCEPTION", message, details)


def _location(details: dict[str, Any]) -> CodeLocation | None:
    """Return where an exception was raised, according to the job."""
    texts = {name: details.get(name) for name in ("file", "function", "field", "source")}
    known: dict[str, Any] = {n: text[:300] for n, text in texts.items() if isinstance(text, str)}
    if not known.get("function", "").isidentifier():
        known.pop("function", None)  # such as <module>
    line = details.get("line")
    is_line = type(line) is int and 0 < line < LINE_MAX
    return CodeLocation(**known, line=line if is_line else None) if "file" in known else None


def _refused(seen: ExitObservation, message: str, **details: Any) -> JobError:
    tried = f" (refused: {', '.join(seen.violations[:3])})" if seen.violations else ""
    text = f"The job tried something that the sandbox does not allow{tried}. {message}"
    return JobError(Category.SANDBOX_VIOLATION, "OPERATION_DENIED", text, details)


def _file_limit(number: Any, message: str, details: dict[str, Any]) -> JobError | None:
    """Return the limit on files that the errno of an exception tells of, if it does."""
    if not isinstance(number, int):
        return None
    if number in FULL:
        return limit_error("DISK_LIMIT", f"The job's folder or /tmp is full: {message}", **details)
    if number == errno.EFBIG:
        return _file_error(**details)
    if number == errno.EMFILE:
        return limit_error(
            "OPEN_FILES_LIMIT", f"The job opened too many files: {message}", **details
        )
    return None


def _file_error(**details: Any) -> JobError:
    message = "The job wrote a file larger than it may be."
    error = located(limit_error("FILE_SIZE_LIMIT", message), _location(details))
    return replace(error, details={**details, **error.details})


def _exited(code: Any, text: Any = None) -> JobError:
    code = code if isinstance(code, int) else 1
    message = f"The job ended itself with exit code {code} before it gave a result."
    if isinstance(text, str):
        message = f"The job ended itself with exit code {code}: {text[:MESSAGE_CHARS_MAX]}"
    return JobError(Category.USER_CODE_ERROR, "EXITED_WITHOUT_RESULT", message, {"exit_code": code})


def _undescribed() -> JobError:
    message = "The job failed and did not describe its error."
    return JobError(Category.USER_CODE_ERROR, "FAILED_WITHOUT_WORDS", message)


def _without_result(seen: ExitObservation) -> JobError | None:
    """Require exactly one result and exit status 0."""
    results = [message for message in seen.messages if "result" in message]
    code = os.waitstatus_to_exitcode(seen.status)
    if len(results) == 1 and code == 0:
        return None
    if len(results) > 1:
        message = "The job gave more than one result; none of them can be believed."
        return JobError(Category.USER_CODE_ERROR, "BAD_RESULT", message, {"results": len(results)})
    message = f"The job's process ended with exit code {code} before it gave a result."
    return JobError(Category.USER_CODE_ERROR, "EXITED_WITHOUT_RESULT", message, {"exit_code": code})


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"
