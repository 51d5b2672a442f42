"""Run tests of CPython and say how each of them ended; this file is the cell.

It is run twice: as a cell, and by plain Python. Before a test begins, its name goes to stderr, so
that the last one is known if it ends the process; one that takes too long is ended with its stack.
A module that needs a resource (the Internet, a sound card, gigabytes) skips what needs it, as
`python -m test` does without `-u`.
"""

import faulthandler
import os
import unittest
from importlib import import_module
from typing import Any

MESSAGE_LENGTH_MAX = 300
TEST_SECONDS_MAX = 40
STDERR = 2


def run_tests(
    module: str, folder: str | None, left_out: list[str], only: list[str]
) -> dict[str, list[str]]:
    """Return the outcome of each test of a module and what it said, by the name of the test.

    Tests of `left_out` are not run; if `only` has any, no others are.
    """
    package = import_module("test")
    if folder is not None:  # what the interpreter lacks; its own tests come first
        package.__path__.append(folder)
    support = import_module("test.support")
    support.use_resources = []  # type: ignore[attr-defined]
    support.verbose = 0  # type: ignore[attr-defined]
    outcomes = _Outcomes()
    tests = unittest.defaultTestLoader.loadTestsFromName(module)
    _chosen(tests, set(left_out), set(only)).run(outcomes)
    faulthandler.cancel_dump_traceback_later()
    return outcomes.found


def _chosen(tests: Any, left_out: set[str], only: set[str]) -> unittest.TestSuite:
    """Return the tests to run, in suites as before."""
    chosen: list[Any] = []
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            chosen.append(_chosen(test, left_out, only))
        elif test.id() not in left_out and (not only or test.id() in only):
            chosen.append(test)
    return unittest.TestSuite(chosen)


class _Outcomes(unittest.TestResult):
    """Collect outcomes; the worst of a test and its subtests counts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}

    def startTest(self, test: Any) -> None:
        os.write(STDERR, f"begins {test.id()}\n".encode())
        # It also ends a module that does not end after its last test.
        faulthandler.dump_traceback_later(TEST_SECONDS_MAX, exit=True, file=STDERR)
        super().startTest(test)

    def addSuccess(self, test: Any) -> None:
        self.found.setdefault(test.id(), ["passed", ""])

    def addFailure(self, test: Any, err: Any) -> None:
        self.found[test.id()] = ["failed", _message(err)]

    def addError(self, test: Any, err: Any) -> None:
        self.found[test.id()] = ["failed", _message(err)]

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.found[test.id()] = ["failed", _message(err)]

    def addSkip(self, test: Any, reason: str) -> None:
        name = getattr(test, "test_case", test).id()
        self.found.setdefault(name, ["skipped", str(reason)[:MESSAGE_LENGTH_MAX]])

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.found.setdefault(test.id(), ["passed", ""])

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.found[test.id()] = ["failed", "it succeeded unexpectedly"]


def _message(error: Any) -> str:
    """Name the exception and the line that raised it, without addresses that differ by run."""
    kind, value, traceback = error
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code.co_name if traceback is not None else "?"
    text = " ".join(str(value).split())
    return f"{kind.__name__}: {text}"[:MESSAGE_LENGTH_MAX] + f" (in {code})"
