"""The checks that a field declares: required, type, allowed values, uniqueness, totals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ade_engine.package.column import Column
from ade_engine.package.config_package import FieldRules
from ade_engine.package.conversion import misfits
from ade_engine.package.issues import Issue, Severity
from ade_engine.pipeline.issue_log import IssueLog
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellKind

MISSING_VALUE = Issue("missing_value", message="A required value is missing.")
ERROR_CELL = Issue("error_cell", message="The cell shows an error instead of a value.")
NO_CACHED_VALUE = Issue(
    "formula_without_value",
    Severity.WARNING,
    "The file holds a formula without its result; open and save it in a spreadsheet program.",
)
INVALID_TYPE = {
    "text": Issue("invalid_type", message="The value is not a text."),
    "number": Issue("invalid_type", message="The value is not a number."),
    "integer": Issue("invalid_type", message="The value is not a whole number."),
    "date": Issue("invalid_type", message="The value is not a date."),
    "boolean": Issue("invalid_type", message="The value is not true or false."),
}
NOT_ALLOWED = Issue("not_allowed", message="The value is not one of the allowed values.")
DUPLICATE_VALUE = Issue("duplicate_value", message="The value also occurs in an earlier row.")
TOTAL_MISMATCH = Issue(
    "total_mismatch", message="The total row is not the sum of the rows above it."
)
TOTAL_TOLERANCE = 0.005


def check_cells(rules: FieldRules, column: Column, rows: IntArray, issue_log: IssueLog) -> None:
    """Check each cell of a chunk against what its field declares."""
    name, declared, cells = rules.name, rules.field, column.cells
    if declared.required:
        empty = column.is_empty().marked() & ~cells.is_kind(CellKind.NO_VALUE)
        issue_log.built_in(name, "required", MISSING_VALUE, rows[empty])
    if cells.kinds.max(initial=0) > CellKind.DATE:
        issue_log.built_in(name, "cell", ERROR_CELL, rows[cells.is_kind(CellKind.ERROR)])
        issue_log.built_in(name, "cell", NO_CACHED_VALUE, rows[cells.is_kind(CellKind.NO_VALUE)])
    if declared.type in INVALID_TYPE:
        wrong = misfits(cells, declared.type)
        if wrong.any():
            issue_log.built_in(name, "type", INVALID_TYPE[declared.type], rows[wrong])
    if declared.allowed:
        others = ~column.is_in(declared.allowed)
        issue_log.built_in(name, "allowed", NOT_ALLOWED, rows[others.marked()])


@dataclass
class UniqueCheck:
    """Find values that occur more than once in a table, by hashes of eight bytes each."""

    prints: list[np.ndarray] = field(default_factory=list)
    rows: list[IntArray] = field(default_factory=list)

    def add(self, column: Column, rows: IntArray) -> None:
        """Add the hashes of a chunk, leaving out empty cells."""
        prints = column.fingerprints()
        if prints.null_count():
            filled = prints.is_not_null()
            prints, rows = prints.filter(filled), rows[filled.to_numpy()]
        self.prints.append(prints.to_numpy())
        self.rows.append(rows)

    def repeated(self) -> IntArray:
        """Return the rows whose value also occurs in an earlier row."""
        if not self.prints:
            return np.zeros(0, np.int64)
        prints, rows = np.concatenate(self.prints), np.concatenate(self.rows)
        order = np.argsort(prints, kind="stable")
        again = np.zeros(len(order), np.bool_)
        again[order[1:]] = prints[order[1:]] == prints[order[:-1]]
        return rows[again]


@dataclass
class TotalCheck:
    """Compare a table's total row with the sum of its data rows."""

    sum: float = 0.0

    def add(self, column: Column) -> None:
        """Add a chunk's numbers."""
        self.sum += column.sum()

    def disagrees(self, stated: Callable[[], float | None]) -> bool:
        """Return whether the table has a total that differs from the sum."""
        total = stated()
        tolerance = max(TOTAL_TOLERANCE, abs(self.sum) * 1e-9)
        return total is not None and abs(total - self.sum) > tolerance
