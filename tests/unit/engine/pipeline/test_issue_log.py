"""The issue log counts issues, keeps their ranges, and drops texts that may hold a value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.package import Issue
from ade_engine.pipeline.issue_log import LINES_MAX, RANGES_MAX, IssueLog, RowRuns

rows = st.lists(st.integers(1, 400), unique=True).map(sorted)


@given(rows, st.integers(1, 50))
def test_runs_do_not_depend_on_how_rows_arrive(numbers: list[int], size: int) -> None:
    whole, pieces = RowRuns(), RowRuns()
    whole.add(np.array(numbers, np.int64))
    for start in range(0, len(numbers), size):
        pieces.add(np.array(numbers[start : start + size], np.int64))
    assert (pieces.count, pieces.kept) == (whole.count, whole.kept)
    assert sum(last - first + 1 for first, last in whole.kept) == len(numbers) or whole.omitted


def test_the_number_of_runs_is_limited() -> None:
    runs = RowRuns()
    runs.add(np.arange(1, 1000, 2))
    assert (runs.count, len(runs.kept), runs.omitted) == (500, RANGES_MAX, 500 - RANGES_MAX)
    assert runs.ranges(28)[0] == "AB1"


def test_only_texts_of_the_package_are_kept() -> None:
    issue_log = IssueLog(frozenset({"known", "A message."}))
    issue_log.authored(
        "a", "col.a.validate", Issue("known", "info", "A message."), np.array([1, 2])
    )
    issue_log.authored("a", "col.a.validate", Issue("unknown", "error", "Another."), np.array([3]))
    first, second = issue_log.as_json({"a": 2})
    assert (first["code"], first["message"], first["message_withheld"]) == (
        "undeclared_code",
        "",
        True,
    )
    assert (second["code"], second["message"], second["ranges"]) == (
        "known",
        "A message.",
        ["B1:B2"],
    )
    assert issue_log.counts() == {"errors": 1, "warnings": 0, "infos": 2}


def test_the_number_of_lines_is_limited() -> None:
    codes = [f"code_{number}" for number in range(LINES_MAX + 5)]
    issue_log = IssueLog(frozenset(codes))
    for code in codes:
        issue_log.authored("a", "r", Issue(code), np.array([1]))
    assert (len(issue_log.lines), issue_log.lines_omitted) == (LINES_MAX, 5)
