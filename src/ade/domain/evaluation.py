"""How usable the result of a run is, and when that makes the run a failure."""

from collections.abc import Mapping
from enum import StrEnum


class Evaluation(StrEnum):
    """Say how usable the output of a run is, by the required columns of its tables."""

    COMPLETE = "complete"  # every table that was written has all required columns
    PARTIAL = "partial"  # a table that was written lacks a required column
    UNUSABLE = "unusable"  # no table could be written


class FailOn(StrEnum):
    """Say from which result on a run is a failure; each word includes those before it."""

    NEVER = "never"
    UNUSABLE = "unusable"
    PARTIAL = "partial"
    ERRORS = "errors"
    WARNINGS = "warnings"


FAIL_ON_DEFAULT = FailOn.UNUSABLE
_ORDER = list(FailOn)
_WHY_UNUSED = {
    "no_header": "without a header row",
    "no_field": "without a column of any field",
    "required_missing": "without any required field",
}


def strictest(*words: FailOn) -> FailOn:
    """Return the word under which the most results are failures."""
    return max(words, key=_ORDER.index)


def shortcoming(
    fail_on: FailOn,
    evaluation: Evaluation,
    issues: Mapping[str, int],
    unused_tables: Mapping[str, int],
) -> str | None:
    """Return what makes a result a failure, in words, or None if it is none.

    `unused_tables` counts the tables that are not in the output, by reason.
    """
    found = {
        FailOn.UNUSABLE: _unusable(unused_tables) if evaluation is Evaluation.UNUSABLE else None,
        FailOn.PARTIAL: (
            "a required column is missing" if evaluation is Evaluation.PARTIAL else None
        ),
        FailOn.ERRORS: _found(issues.get("error", 0), "error"),
        FailOn.WARNINGS: _found(issues.get("warning", 0), "warning"),
    }
    levels = _ORDER[1 : _ORDER.index(fail_on) + 1]
    return next((words for level in levels if (words := found[level]) is not None), None)


def _unusable(tables: Mapping[str, int]) -> str:
    counted = [
        f"{count} {'table' if count == 1 else 'tables'} {_WHY_UNUSED[reason]}"
        for reason, count in sorted(tables.items())
        if reason in _WHY_UNUSED
    ]
    return f"no table could be used ({', '.join(counted) or 'none was found'})"


def _found(count: int, noun: str) -> str | None:
    if not count:
        return None
    return f"{count} {noun} was found" if count == 1 else f"{count} {noun}s were found"
