"""The comparison of CPython's tests as cells with plain Python misses no difference."""

from tests.cpython.compare import UNEXPLAINED, Difference, differences, explained
from tests.cpython.runs import DATA, ModuleRun

PASSED = ["passed", ""]
TEST = "test.test_x.Some.test_one"


def found(plain: ModuleRun, cell: ModuleRun) -> list[tuple[str, str, str]]:
    return [(one.plain, one.cell, one.message) for one in differences("test_x", plain, cell)]


def test_equal_outcomes_are_no_difference() -> None:
    assert found(ModuleRun({TEST: PASSED}), ModuleRun({TEST: PASSED})) == []


def test_a_test_that_fails_on_one_side_differs() -> None:
    failed = ModuleRun({TEST: ["failed", "OSError"]})
    assert found(ModuleRun({TEST: PASSED}), failed) == [("passed", "failed", "OSError")]
    assert found(failed, ModuleRun({TEST: PASSED})) == [("failed", "passed", "OSError")]


def test_a_class_that_cannot_be_prepared_is_the_outcome_of_its_tests() -> None:
    cell = ModuleRun({"setUpClass (test.test_x.Some)": ["skipped", "no sockets"]})
    assert found(ModuleRun({TEST: PASSED}), cell) == [("passed", "skipped", "no sockets")]


def test_a_module_that_does_not_end_differs_in_all_its_tests() -> None:
    plain = ModuleRun({TEST: PASSED})
    assert found(plain, ModuleRun(ending="TIMED_OUT")) == [("passed", "not run", "TIMED_OUT")]


def test_a_module_that_plain_python_does_not_end_is_shown() -> None:
    assert found(ModuleRun(ending="status 1"), ModuleRun(ending="status 1"))


def test_a_difference_without_a_known_reason_is_unexplained() -> None:
    unknown = Difference("test_x", TEST, "passed", "failed", "ValueError: 7 (in test_one)")
    assert explained(unknown).reason == UNEXPLAINED
    known = Difference("test_x", TEST, "passed", "failed", "OSError: [Errno 30] Read-only")
    assert explained(known).reason != UNEXPLAINED


def test_there_are_100_modules() -> None:
    assert len(set(DATA["modules"])) == 100
