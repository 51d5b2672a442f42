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


def strictest(*words: FailOn) -> FailOn:
    """Return the word under which the most results are failures."""
    return max(words, key=_ORDER.index)


def shortcoming(fail_on: FailOn, evaluation: Evaluation, issues: Mapping[str, int]) -> str | None:
    """Return what makes a result a failure, in words, or None if it is none."""
    found = {
        FailOn.UNUSABLE: "no table could be used" if evaluation is Evaluation.UNUSABLE else None,
        FailOn.PARTIAL: (
            "a required column is missing" if evaluation is Evaluation.PARTIAL else None
        ),
        FailOn.ERRORS: _found(issues.get("error", 0), "error"),
        FailOn.WARNINGS: _found(issues.get("warning", 0), "warning"),
    }
    levels = _ORDER[1 : _ORDER.index(fail_on) + 1]
    return next((words for level in levels if (words := found[level]) is not None), None)


def _found(count: int, noun: str) -> str | None:
    if not count:
        return None
    return f"{count} {noun} was found" if count == 1 else f"{count} {noun}s were found"
