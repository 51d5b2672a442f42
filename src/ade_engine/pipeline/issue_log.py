"""Keep the issues of a table: one line for each rule, field and code, with counts and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ade_engine.package.issues import Issue, Severity
from ade_engine.pipeline.ranges import RowRuns
from ade_engine.sheets.arrays import IntArray

LINES_MAX = 1_000
UNDECLARED = "undeclared_code"


@dataclass(frozen=True)
class IssueLine:
    """What one line of the issue log is about."""

    field: str
    rule: str
    code: str
    severity: Severity
    message: str
    withheld: bool = False


@dataclass
class IssueLog:
    """Take issues; a text is kept only if the engine or the package's source wrote it."""

    texts: frozenset[str]
    lines: dict[IssueLine, RowRuns] = field(default_factory=dict)
    lines_omitted: int = 0

    def built_in(self, name: str, rule: str, issue: Issue, rows: IntArray) -> None:
        """Take an issue that the engine itself found."""
        if len(rows):
            line = IssueLine(
                name, f"col.{name}.{rule}", issue.code, Severity(issue.severity), issue.message
            )
            self._runs(line).add(rows)

    def authored(self, name: str, rule: str, issue: Issue, rows: IntArray | None) -> None:
        """Take an issue of a package's validator; without rows it is about the whole table."""
        told = issue.message in self.texts or not issue.message
        code = issue.code if issue.code in self.texts else UNDECLARED
        message = issue.message if told else ""
        withheld = not told or code == UNDECLARED
        runs = self._runs(IssueLine(name, rule, code, Severity(issue.severity), message, withheld))
        if rows is None:
            runs.count += 1
        else:
            runs.add(rows)

    def _runs(self, line: IssueLine) -> RowRuns:
        if line not in self.lines and len(self.lines) >= LINES_MAX:
            self.lines_omitted += 1
            return RowRuns()
        return self.lines.setdefault(line, RowRuns())

    def counts(self) -> dict[str, int]:
        """Count the issues by severity."""
        found = dict.fromkeys(Severity, 0)
        for line, runs in self.lines.items():
            found[line.severity] += runs.count
        return {f"{severity}s": count for severity, count in found.items()}

    def as_json(self, columns: Mapping[str, int]) -> list[dict[str, Any]]:
        """Give the lines with their ranges in the sheet, worst first, then by field and code."""
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


def no_rows() -> IntArray:
    """Give an empty list of rows."""
    return np.zeros(0, np.int64)
