"""What a run says of its own result: the evaluation, the counts, and whether it is a failure.

All of it comes from the process that ran the package's code, so it is checked before it is
recorded. A package can lie about its own result, as it can write what it likes into its output; it
cannot store anything but a known word and numbers.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from ade.domain.evaluation import FAIL_ON_DEFAULT, Evaluation, FailOn, shortcoming
from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome

REASONS_MAX = 100
Count = Annotated[int, Field(ge=0, le=2**53)]
PartKind = Literal["sheets", "tables", "columns", "rows"]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=60)]


class _Summary(BaseModel):
    """The counts in the summary of a run."""

    tables: Count
    tables_written: Count
    rows_written: Count
    columns_mapped: Count
    errors: Count
    warnings: Count
    infos: Count
    skipped: dict[PartKind, Annotated[dict[Reason, Count], Field(max_length=REASONS_MAX)]]


class _Report(BaseModel):
    """What the entry point of a run returns, as far as it is recorded."""

    evaluation: Evaluation
    summary: _Summary
    fail_on: FailOn = FAIL_ON_DEFAULT


def evaluated(outcome: Outcome, fail_on: str | None) -> Outcome:
    """Return the outcome of a run with its evaluation; `fail_on` of the run goes before that of
    its package. A run that fails by it keeps its result and its files.
    """
    if outcome.status is not Status.SUCCEEDED or outcome.result is None:
        return outcome
    try:
        report = _Report.model_validate(outcome.result["outputs"]["result_json"], strict=False)
    except ValidationError:
        message = "The run ended without a summary of its result."
        error = JobError(Category.USER_CODE_ERROR, "BAD_RESULT", message)
        return replace(outcome, status=Status.FAILED, error=error)
    counts = _counts(report.summary)
    known = replace(outcome, evaluation=report.evaluation, counts=counts)
    level = FailOn(fail_on) if fail_on is not None else report.fail_on
    unused_tables = counts["skipped"].get("tables", {})
    reason = shortcoming(level, report.evaluation, counts["issues"], unused_tables)
    if reason is None:
        return known
    return replace(known, status=Status.FAILED, error=_error(level, report, counts, reason))


def _error(level: FailOn, report: _Report, counts: Mapping[str, Any], reason: str) -> JobError:
    message = (
        f"The result is {report.evaluation.value} and {reason}, which is a failure because fail_on"
        f" is {level.value}. The output and the artifact are kept."
    )
    details = {
        "fail_on": level.value,
        "evaluation": report.evaluation.value,
        "issues": counts["issues"],
    }
    return JobError(Category.VALIDATION_ERROR, "EVALUATION_FAILED", message, details)


def _counts(summary: _Summary) -> dict[str, Any]:
    return {
        "tables": summary.tables,
        "tables_written": summary.tables_written,
        "rows": summary.rows_written,
        "columns_mapped": summary.columns_mapped,
        "issues": {
            "error": summary.errors,
            "warning": summary.warnings,
            "info": summary.infos,
        },
        "skipped_rows": sum(summary.skipped.get("rows", {}).values()),
        "skipped": summary.skipped,
    }
