# ruff: noqa: E501 - a table has one row per line
"""A child is classified by what was observed first, and by its own messages last."""

import errno
import os
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.limits import Limits
from ade.domain.outcome import Category, JobError
from ade.sandbox.exit_status import ExitObservation, classify_exit, limit_error

LIMITS = Limits(timeout_ms=1000, cpu_ms=1000, memory_mb=100, max_output_kb=16, max_artifacts=5)
KILLED, SEGV, ABORTED = signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT
RESULT = {"result": 1}


def _raised(type_: str = "ValueError", *bases: str, **more: Any) -> dict[str, Any]:
    return {"failure": {"type": type_, "bases": [type_, *bases], "message": "words", **more}}


def _os_error(number: int) -> dict[str, Any]:
    return _raised("OSError", errno=number)


def _declared_failure(
    code: str, category: str = "USER_CODE_ERROR", **details: Any
) -> dict[str, Any]:
    words = {"code": code, "category": category, "message": "words.", "details": details}
    return _raised("AuthorError", declared=words)


def _exit(code: int) -> int:
    return code << 8


# status, what else was seen, what comes of it
TABLE: list[tuple[str, int, dict[str, Any], str | None]] = [
    ("a result and a clean end", 0, {"messages": [RESULT]}, None),
    ("null is a result", 0, {"messages": [{"result": None}]}, None),
    ("other words do not matter", 0, {"messages": [{"word": 1}, RESULT]}, None),
    ("no result", 0, {}, "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"),
    ("two results", 0, {"messages": [RESULT, RESULT]}, "USER_CODE_ERROR/BAD_RESULT"),
    ("a result, then exit 1", _exit(1), {"messages": [RESULT]}, "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"),
    ("a result, then a failure", 0, {"messages": [RESULT, _raised()]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("a result, then a crash", SEGV, {"messages": [RESULT]}, "USER_CODE_ERROR/KILLED_BY_SIGNAL"),
    ("an exception", _exit(1), {"messages": [_raised()]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("sys.exit", _exit(1), {"messages": [{"failure": {"exit": 0}}]}, "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"),
    ("no JSON", _exit(1), {"messages": [{"failure": {"result_not_json": "x"}}]}, "USER_CODE_ERROR/BAD_RESULT"),
    ("a failure of no kind", _exit(1), {"messages": [{"failure": {}}]}, "USER_CODE_ERROR/FAILED_WITHOUT_WORDS"),
    ("a failure that is a number", _exit(1), {"messages": [{"failure": 5}]}, "USER_CODE_ERROR/FAILED_WITHOUT_WORDS"),
    ("no memory", _exit(1), {"messages": [_raised("MemoryError")]}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("no memory for numpy", _exit(1), {"messages": [_raised("_ArrayMemoryError", "MemoryError")]}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("no memory in a function", _exit(1), {"messages": [_declared_failure("author_code_failed", exception="MemoryError", file="a.py", line=3)]}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("no memory anywhere", _exit(1), {"messages": [_declared_failure("out_of_memory", "RESOURCE_LIMIT")]}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("no thread", _exit(1), {"messages": [_raised("RuntimeError", message="can't start new thread")]}, "RESOURCE_LIMIT/PROCESS_LIMIT"),
    ("no process", _exit(1), {"messages": [_raised("BlockingIOError", "OSError", errno=errno.EAGAIN)]}, "RESOURCE_LIMIT/PROCESS_LIMIT"),
    ("no room", _exit(1), {"messages": [_os_error(errno.ENOSPC)]}, "RESOURCE_LIMIT/DISK_LIMIT"),
    ("no quota", _exit(1), {"messages": [_os_error(errno.EDQUOT)]}, "RESOURCE_LIMIT/DISK_LIMIT"),
    ("too large a file", _exit(1), {"messages": [_os_error(errno.EFBIG)]}, "RESOURCE_LIMIT/FILE_SIZE_LIMIT"),
    ("too large a file in a function", _exit(1), {"messages": [_declared_failure("author_code_failed", errno=errno.EFBIG)]}, "RESOURCE_LIMIT/FILE_SIZE_LIMIT"),
    ("too large an output", _exit(1), {"messages": [_declared_failure("output_not_written", "RESOURCE_LIMIT", errno=errno.EFBIG)]}, "RESOURCE_LIMIT/FILE_SIZE_LIMIT"),
    ("no room in a function", _exit(1), {"messages": [_declared_failure("author_code_failed", errno=errno.ENOSPC)]}, "RESOURCE_LIMIT/DISK_LIMIT"),
    ("an errno that is none", _exit(1), {"messages": [_declared_failure("author_code_failed", errno=[27])]}, "USER_CODE_ERROR/AUTHOR_CODE_FAILED"),
    ("too many files", _exit(1), {"messages": [_os_error(errno.EMFILE)]}, "RESOURCE_LIMIT/OPEN_FILES_LIMIT"),
    ("not allowed", _exit(1), {"messages": [_os_error(errno.EPERM)]}, "SANDBOX_VIOLATION/OPERATION_DENIED"),
    ("read-only", _exit(1), {"messages": [_os_error(errno.EROFS)]}, "SANDBOX_VIOLATION/OPERATION_DENIED"),
    ("not found is no violation", _exit(1), {"messages": [_os_error(errno.ENOENT)]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("a bug after a refusal", _exit(1), {"messages": [_raised()], "violations": ["socket AF_INET"]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("what wraps a refusal", _exit(1), {"messages": [_raised("URLError", errnos=[errno.EPERM])], "violations": ["socket AF_INET"]}, "SANDBOX_VIOLATION/OPERATION_DENIED"),
    ("a name that cannot be looked up", _exit(1), {"messages": [_raised("gaierror", is_name_lookup=True)], "violations": ["socket AF_INET"]}, "SANDBOX_VIOLATION/OPERATION_DENIED"),
    ("a name that does not exist", _exit(1), {"messages": [_raised("gaierror", is_name_lookup=True)]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("errnos of no kind", _exit(1), {"messages": [_raised(errnos={"a": 1})]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("errnos of any kind", _exit(1), {"messages": [_raised(errnos=[[], {}, "1"])]}, "USER_CODE_ERROR/PYTHON_EXCEPTION"),
    ("a declared bug after a refusal", _exit(1), {"messages": [_declared_failure("author_code_failed")], "violations": ["socket AF_INET6"]}, "USER_CODE_ERROR/AUTHOR_CODE_FAILED"),
    ("a result in spite of a refusal", 0, {"messages": [RESULT], "violations": ["socket AF_INET"]}, None),
    ("an end after a refusal", 0, {"violations": ["ptrace"]}, "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"),
    ("a module", _exit(1), {"messages": [_raised("ModuleNotFoundError", module="x")]}, "DEPENDENCY_ERROR/MODULE_NOT_FOUND"),
    ("a crash", SEGV, {}, "USER_CODE_ERROR/KILLED_BY_SIGNAL"),
    ("a crash for want of memory", ABORTED, {"stderr": "memory allocation of 5 bytes failed"}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("a crash near the limit", SEGV, {"memory_mb_peak": 99}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("an unknown signal", 40, {}, "USER_CODE_ERROR/KILLED_BY_SIGNAL"),
    ("the processor's limit", signal.SIGXCPU, {}, "RESOURCE_LIMIT/CPU_LIMIT"),
    ("killed when its time was up", KILLED, {"cpu_ms": 990}, "RESOURCE_LIMIT/CPU_LIMIT"),
    ("killed for no reason of ours", KILLED, {}, "RESOURCE_LIMIT/KILLED_BY_OS"),
    ("killed by its group", KILLED, {"was_killed_by_memory_limit": True}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("a child of its killed by its group", 0, {"messages": [RESULT], "was_killed_by_memory_limit": True}, "RESOURCE_LIMIT/MEMORY_LIMIT"),
    ("too large a file, by signal", signal.SIGXFSZ, {}, "RESOURCE_LIMIT/FILE_SIZE_LIMIT"),
    ("a call of another machine", signal.SIGSYS, {}, "SANDBOX_VIOLATION/OPERATION_DENIED"),
    ("our reason comes first", KILLED, {"killed_for": limit_error("X", "x"), "messages": [RESULT]}, "RESOURCE_LIMIT/X"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "seen", "verdict"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])  # fmt: skip
def test_verdict(status: int, seen: dict[str, Any], verdict: str | None) -> None:
    error = classify_exit(ExitObservation(status, LIMITS, **seen))
    assert verdict == (None if error is None else f"{error.category}/{error.code}")


def test_what_was_refused_is_named() -> None:
    seen = ExitObservation(
        _exit(1), LIMITS, messages=[_os_error(errno.EPERM)], violations=["ptrace", "socket AF_INET"]
    )
    error = classify_exit(seen)
    assert error is not None
    assert error.details["refused"] == ["ptrace", "socket AF_INET"]
    assert "ptrace" in error.message


def test_a_bug_is_not_put_down_to_an_earlier_refusal() -> None:
    seen = ExitObservation(_exit(1), LIMITS, messages=[_raised()], violations=["socket AF_INET6"])
    error = classify_exit(seen)
    assert error is not None
    assert "refused" not in error.details
    assert "AF_INET6" not in error.message


def test_the_message_of_an_exit_is_kept() -> None:
    failure = {"failure": {"exit": 1, "exit_message": "no input given"}}
    error = classify_exit(ExitObservation(_exit(1), LIMITS, messages=[failure]))
    assert error is not None
    assert error.message.endswith("exit code 1: no input given")


def test_a_storm_of_refusals_is_bounded() -> None:
    names = [f"call {number}" for number in range(1000)]
    raised = [_os_error(errno.EPERM)]
    error = classify_exit(ExitObservation(_exit(1), LIMITS, messages=raised, violations=names))
    assert error is not None
    assert len(error.details["refused"]) == 20
    assert len(error.message) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
words_of_failure = st.sampled_from(
    ["type", "message", "module", "exit", "result_not_json", "line", "traceback"]
)
failures = st.dictionaries(words_of_failure, json_values, max_size=6) | json_values
MESSAGES = st.lists(
    st.fixed_dictionaries({}, optional={"result": json_values, "failure": failures}), max_size=4
)


MALFORMED = [
    {"type": "X", "bases": 5},
    {"type": "X", "errno": [1]},
    {"type": "X", "errno": {}},
    {"type": "X", "bases": {"MemoryError": 1}, "message": None, "line": "x"},
]


@pytest.mark.parametrize("failure", MALFORMED, ids=repr)
def test_a_malformed_exception_is_the_jobs_own_error(failure: dict[str, Any]) -> None:
    error = classify_exit(ExitObservation(_exit(1), LIMITS, messages=[{"failure": failure}]))
    assert error is not None
    assert error.category is Category.USER_CODE_ERROR


@given(messages=MESSAGES, status=st.sampled_from([0, _exit(1), SEGV, KILLED]))
def test_no_message_of_a_child_breaks_the_classification(messages: list[Any], status: int) -> None:
    error = classify_exit(ExitObservation(status, LIMITS, messages=messages))
    assert error is None or isinstance(error, JobError)
    assert error is None or error.category is not Category.INTERNAL_ERROR
    if error is None:
        assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(
    "said",
    [
        _raised("MemoryError", file="a.py", line=3, function="f", traceback="..."),
        _declared_failure(
            "author_code_failed",
            exception="MemoryError",
            file="a.py",
            line=3,
            function="f",
            source="x = [0] * 10**12",
        ),
    ],
)
def test_a_memory_error_names_its_location(said: dict[str, Any]) -> None:
    found = classify_exit(ExitObservation(_exit(1), LIMITS, messages=[said]))
    assert found is not None
    assert found.message == "The job used more than its 100 MiB of memory, in f (a.py:3)."
    assert found.details["memory_mb"] == 100
    assert (found.details["file"], found.details["line"]) == ("a.py", 3)


@pytest.mark.parametrize(
    "details",
    [
        {"file": 5, "line": 3},
        {"file": "a.py", "line": "3", "function": ["f"]},
        {"file": "a.py", "line": -1, "function": "<module>"},
        {"file": "a.py", "line": 10**30, "field": {}},
        {"file": "a" * 10_000, "line": True},
    ],
)
def test_malformed_locations_are_left_out(details: dict[str, Any]) -> None:
    said = _declared_failure("author_code_failed", exception="MemoryError", **details)
    found = classify_exit(ExitObservation(_exit(1), LIMITS, messages=[said]))
    assert found is not None
    assert found.code == "MEMORY_LIMIT"
    assert set(found.details) <= {"memory_mb", "file"}
    assert len(found.message) < 500
