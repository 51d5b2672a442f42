"""Collect the issues of a table: one line for each field, rule and code, with count and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ade_engine.package.issues import Issue, Severity
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.coordinates import Range, a1

LINES_MAX = 1_000
RANGES_MAX = 100  # of one line; further ranges are only counted
UNDECLARED = "undeclared_code"


@dataclass
class RowRuns:
    """Row numbers as runs; at most `RANGES_MAX` runs are kept, but all rows are counted."""

    count: int = 0
    kept: list[tuple[int, int]] = field(default_factory=list)
    omitted: int = 0

    def add(self, rows: IntArray) -> None:
        """Add rows, which must follow all rows added before."""
        if not len(rows):
            return
        self.count += len(rows)
        breaks = np.flatnonzero(np.diff(rows) > 1)
        firsts = rows[np.concatenate(([0], breaks + 1))]
        lasts = rows[np.concatenate((breaks, [len(rows) - 1]))]
        start = 0
        if self.kept and not self.omitted and self.kept[-1][1] + 1 == firsts[0]:
            self.kept[-1] = (self.kept[-1][0], int(lasts[0]))
            start = 1
        room = max(RANGES_MAX - len(self.kept), 0)
        runs = zip(
            firsts[start : start + room].tolist(), lasts[start : start + room].tolist(), strict=True
        )
        self.kept += runs
        self.omitted += max(len(firsts) - start - room, 0)

    def ranges(self, column: int) -> list[str]:
        """Return the runs as ranges of a column in A1 notation."""
        return [
            a1(first, column) if first == last else str(Range(first, column, last, column))
            for first, last in self.kept
        ]


@dataclass(frozen=True)
class IssueLine:
    """What the issues of one line have in common."""

    field: str
    rule: str
    code: str
    severity: Severity
    message: str
    withheld: bool = False


@dataclass
class IssueLog:
    """The issues of a table; texts are kept only if the package's source contains them."""

    texts: frozenset[str]
    on_issue: Callable[[IssueLine, IntArray | None], None] | None = None
    """Called with the rows of each issue, before they are reduced to ranges."""
    lines: dict[IssueLine, RowRuns] = field(default_factory=dict)
    _others: dict[IssueLine, RowRuns] = field(default_factory=dict)

    @property
    def lines_omitted(self) -> int:
        """Count the issues that are counted by severity only, because there were too many lines."""
        return sum(runs.count for runs in self._others.values())

    def built_in(self, name: str, rule: str, issue: Issue, rows: IntArray) -> None:
        """Add an issue that a built-in check found."""
        if len(rows):
            line = IssueLine(
                name, f"col.{name}.{rule}", issue.code, Severity(issue.severity), issue.message
            )
            self._runs(line).add(rows)
            if self.on_issue is not None:
                self.on_issue(line, rows)

    def authored(self, name: str, rule: str, issue: Issue, rows: IntArray | None) -> None:
        """Add an issue of a package's validator; without rows it is about the whole table."""
        known = issue.message in self.texts or not issue.message
        code = issue.code if issue.code in self.texts else UNDECLARED
        message = issue.message if known else ""
        withheld = not known or code == UNDECLARED
        line = IssueLine(name, rule, code, Severity(issue.severity), message, withheld)
        runs = self._runs(line)
        if rows is None:
            runs.count += 1
        else:
            runs.add(rows)
        if self.on_issue is not None:
            self.on_issue(line, rows)

    def _runs(self, line: IssueLine) -> RowRuns:
        if line not in self.lines and len(self.lines) >= LINES_MAX:
            other = IssueLine("", "", "", line.severity, "")
            return self._others.setdefault(other, RowRuns())
        return self.lines.setdefault(line, RowRuns())

    def counts(self) -> dict[str, int]:
        """Count the issues by severity."""
        found = dict.fromkeys(Severity, 0)
        for line, runs in (*self.lines.items(), *self._others.items()):
            found[line.severity] += runs.count
        return {f"{severity}s": count for severity, count in found.items()}

    def as_json(self, columns: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return the lines with their ranges, sorted by severity, column, field, rule and code."""
        order = list(Severity)
        ranked = sorted(
            self.lines.items(),
            key=lambda item: (
                order.index(item[0].severity),
                columns.get(item[0].field, 0),
                item[0].field,
                item[0].rule,
                item[0].code,
                item[0].message,
            ),
        )
        return [
            _line_json(line, runs, columns.get(line.field)) for line, runs in ranked if runs.count
        ]


def _line_json(line: IssueLine, runs: RowRuns, column: int | None) -> dict[str, Any]:
    return {
        "rule": line.rule,
        "field": line.field,
        "code": line.code,
        "severity": line.severity.value,
        "message": line.message,
        "message_withheld": line.withheld,
        "count": runs.count,
        "ranges": runs.ranges(column) if column else [],
        "ranges_omitted": runs.omitted,
    }
