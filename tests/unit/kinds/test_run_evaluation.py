"""What a run says of its own result is checked, recorded, and compared with `fail_on`."""

from typing import Any, get_args

import pytest

from ade.domain.evaluation import Evaluation
from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome
from ade.kinds.run_evaluation import PartKind, evaluated
from ade_engine.record import skipped

SUMMARY: dict[str, Any] = {
    "tables": 2,
    "tables_written": 1,
    "rows_written": 6,
    "columns_mapped": 3,
    "columns_unmapped": 1,
    "skipped": {"sheets": {"hidden": 1}, "tables": {}, "rows": {"total": 3, "note": 1}},
    "issues": 3,
    "errors": 1,
    "warnings": 2,
    "infos": 0,
}


def outcome(evaluation: Any = "complete", **more: Any) -> Outcome:
    """Make the outcome of a run whose entry point returned this."""
    report = {"evaluation": evaluation, "summary": SUMMARY, "fail_on": "unusable", **more}
    return Outcome(Status.SUCCEEDED, {"outputs": {"result_json": report, "stdout": "hello"}})


def test_the_counts_are_those_of_the_summary() -> None:
    found = evaluated(outcome(), None)
    assert (found.status, found.evaluation) == (Status.SUCCEEDED, Evaluation.COMPLETE)
    assert found.counts == {
        "tables": 2,
        "tables_written": 1,
        "rows": 6,
        "columns_mapped": 3,
        "issues": {"error": 1, "warning": 2, "info": 0},
        "skipped_rows": 4,
        "skipped": SUMMARY["skipped"],
    }


def test_a_run_that_fails_by_fail_on_keeps_what_it_left() -> None:
    found = evaluated(outcome("unusable"), None)
    assert (found.status, found.evaluation) == (Status.FAILED, Evaluation.UNUSABLE)
    assert found.error is not None
    assert found.error.category is Category.VALIDATION_ERROR
    assert found.error.code == "EVALUATION_FAILED"
    assert "no table could be used" in found.error.message
    assert found.error.details["fail_on"] == "unusable"
    assert found.counts is not None
    assert found.result == outcome("unusable").result


def test_the_run_goes_before_its_package() -> None:
    assert evaluated(outcome(fail_on="errors"), None).status is Status.FAILED
    assert evaluated(outcome(fail_on="errors"), "partial").status is Status.SUCCEEDED
    assert evaluated(outcome("unusable"), "never").status is Status.SUCCEEDED
    assert evaluated(outcome(), "errors").status is Status.FAILED


@pytest.mark.parametrize(
    "report",
    [
        None,
        "text",
        {},
        {"evaluation": "perfect", "summary": SUMMARY},
        {"evaluation": "complete", "summary": {**SUMMARY, "errors": -1}},
        {"evaluation": "complete", "summary": {**SUMMARY, "tables": 10**30}},
        {"evaluation": "complete", "summary": {**SUMMARY, "skipped": {"rows": {"x" * 61: 1}}}},
        {"evaluation": "complete", "summary": {**SUMMARY, "skipped": {"cells": {"x": 1}}}},
        {"evaluation": "complete", "summary": SUMMARY, "fail_on": "sometimes"},
    ],
)
def test_a_summary_that_cannot_be_is_no_result(report: Any) -> None:
    found = evaluated(Outcome(Status.SUCCEEDED, {"outputs": {"result_json": report}}), None)
    assert (found.status, found.evaluation, found.counts) == (Status.FAILED, None, None)
    assert found.error is not None
    assert found.error.code == "BAD_RESULT"


def test_a_run_that_failed_otherwise_has_no_evaluation() -> None:
    error = JobError(Category.USER_CODE_ERROR, "PYTHON_EXCEPTION", "no")
    failed = Outcome(Status.FAILED, {"outputs": {"result_json": None}}, error)
    assert evaluated(failed, "errors") is failed


def test_what_can_be_skipped_has_the_words_of_the_engine() -> None:
    assert get_args(PartKind) == tuple(skipped.PartKind)
