"""Find issues: built-in checks of each cell, the author's validators, checks of whole tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ade_engine.package.author_errors import Misuse
from ade_engine.package.column import Column
from ade_engine.package.config_package import FieldRules
from ade_engine.package.function_arguments import RowValues
from ade_engine.package.functions import AuthorFunction
from ade_engine.package.issues import Issue, Issues
from ade_engine.pipeline.apply_per_value import ApplyPerValue
from ade_engine.pipeline.built_in_checks import (
    DUPLICATE_VALUE,
    TOTAL_MISMATCH,
    TotalCheck,
    UniqueCheck,
    check_cells,
)
from ade_engine.pipeline.issue_log import IssueLog
from ade_engine.pipeline.mapped_table import Columns, MappedTable
from ade_engine.pipeline.python_values import NOTHING
from ade_engine.sheets.arrays import BoolArray, IntArray
from ade_engine.sheets.cells import CellArray

INVALID = "invalid"
WANTS_VALUE = "It must return None, True, False, a code, or one or several Issue(...)."
WANTS_COLUMN = "It must return column.issues_where(...), a list of those, or None."
WANTS_TABLE = "It must return column.issues_where(...), Issue(...), a list of those, or None."


@dataclass
class Validate:
    """Validate the chunks of one table, then the table as a whole."""

    table: MappedTable
    rules: tuple[FieldRules, ...]
    arguments: dict[str, Any]
    issue_log: IssueLog
    stated_total: Callable[[str], float | None]
    _each: dict[str, ApplyPerValue] = field(default_factory=dict)
    _unique: dict[str, UniqueCheck] = field(default_factory=dict)
    _totals: dict[str, TotalCheck] = field(default_factory=dict)
    _kept: dict[str, list[CellArray]] = field(default_factory=dict)
    _kept_rows: list[IntArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._unique = {r.name: UniqueCheck() for r in self.rules if r.field.unique}
        self._totals = {r.name: TotalCheck() for r in self.rules if r.field.totals}
        self._kept = {name: [] for name in self._needed_whole()}

    def _needed_whole(self) -> list[str]:
        """List the fields that a `validate_table` function uses, whose columns are kept whole."""
        named: set[str] = set()
        for rules in self.rules:
            function = rules.functions.get("validate_table")
            if function is not None:
                named |= function.texts()
                if "column" in function.parameters:
                    named.add(rules.name)
        return [rules.name for rules in self.rules if rules.name in named]

    def __call__(self, after: Columns, rows: IntArray) -> None:
        """Validate one chunk."""
        values = RowValues(after, rows)
        for rules in self.rules:
            column = self.table.column(rules.name, after[rules.name])
            check_cells(rules, column, rows, self.issue_log)
            if rules.name in self._unique:
                self._unique[rules.name].add(column, rows)
            if rules.name in self._totals:
                self._totals[rules.name].add(column)
            self._by_column(rules, column, rows)
            self._by_value(rules, column, values, rows)
        for name, parts in self._kept.items():
            parts.append(after[name])
        if self._kept:
            self._kept_rows.append(rows)

    def _by_column(self, rules: FieldRules, column: Column, rows: IntArray) -> None:
        function = rules.functions.get("validate_column")
        if function is None:
            return
        result = function({**self.arguments, "field": rules.field, "column": column})
        self._note_all(rules, function, _several(result, function, Issues, WANTS_COLUMN), rows)

    def _by_value(
        self, rules: FieldRules, column: Column, values: RowValues, rows: IntArray
    ) -> None:
        function = rules.functions.get("validate")
        if function is None:
            return
        arguments = {**self.arguments, "field": rules.field}
        each = self._each.setdefault(rules.name, ApplyPerValue(function, arguments))

        def cell(index: int) -> str:
            return self.table.cell(rules.name, int(rows[index]))

        results = each.results(column.cells, values, cell)
        if set(map(type, results)) <= {NOTHING}:
            return
        found: dict[Issue, list[int]] = {}
        for index, result in enumerate(results):
            if result is None or result is True:
                continue
            # An issue counts once for a cell, so that no count can be made to hold a value.
            for issue in dict.fromkeys(_issues_of_value(result, function, cell(index))):
                found.setdefault(issue, []).append(index)
        for issue, indexes in found.items():
            self.issue_log.authored(rules.name, str(function.rule), issue, rows[np.array(indexes)])

    def finish(self) -> None:
        """Validate the table as a whole, after all of its chunks."""
        for name, unique in self._unique.items():
            self.issue_log.built_in(name, "unique", DUPLICATE_VALUE, unique.repeated())
        for name, total in self._totals.items():
            if total.disagrees(lambda name=name: self.stated_total(name)):  # type: ignore[misc]
                row = self.table.region.skipped["total"].last
                self.issue_log.built_in(name, "totals", TOTAL_MISMATCH, np.array([row]))
        whole = {name: CellArray.joined(parts) for name, parts in self._kept.items() if parts}
        rows = np.concatenate(self._kept_rows) if self._kept_rows else np.zeros(0, np.int64)
        for rules in self.rules:
            function = rules.functions.get("validate_table")
            if function is not None and (whole or not self._kept):
                self._by_table(rules, function, whole, rows)

    def _by_table(
        self, rules: FieldRules, function: AuthorFunction, whole: Columns, rows: IntArray
    ) -> None:
        arguments = {**self.arguments, "field": rules.field}
        if rules.name in whole:
            arguments["column"] = self.table.column(rules.name, whole[rules.name])
        results = list(_several(function(arguments), function, Issues | Issue, WANTS_TABLE))
        for issue in dict.fromkeys(one for one in results if isinstance(one, Issue)):
            self.issue_log.authored(rules.name, str(function.rule), issue, None)
        marked = [one for one in results if isinstance(one, Issues)]
        self._note_all(rules, function, marked, rows)

    def whole_column(self, name: str) -> Column | None:
        """Return all rows of a field, if a `validate_table` function uses it."""
        parts = self._kept.get(name)
        return self.table.column(name, CellArray.joined(parts)) if parts else None

    def _note_all(
        self,
        rules: FieldRules,
        function: AuthorFunction,
        several: Iterable[Issues],
        rows: IntArray,
    ) -> None:
        """Report issues, each once for a cell, however often the function returned it."""
        found: dict[Issue, BoolArray] = {}
        for issues in several:
            if len(issues.where) != len(rows):
                raise function.failures.misused(
                    function, "Its mask does not have the length of the column."
                )
            marked = issues.where.marked()
            known = found.get(issues.issue)
            found[issues.issue] = marked if known is None else known | marked
        for issue, marked in found.items():
            if marked.any():
                self.issue_log.authored(rules.name, str(function.rule), issue, rows[marked])


def _several(result: object, function: AuthorFunction, kind: Any, wants: str) -> Iterable[Any]:
    if result is None:
        return ()
    if isinstance(result, kind):
        return (result,)
    found = (
        list(result) if isinstance(result, Iterable) and not isinstance(result, str) else [result]
    )
    if not all(isinstance(one, kind) for one in found if one is not None):
        raise function.failures.misused(function, wants)
    return [one for one in found if one is not None]


def _issues_of_value(result: object, function: AuthorFunction, cell: str) -> Iterable[Issue]:
    if result is False:
        return (Issue(INVALID),)
    if isinstance(result, str):
        result = _issue_of_code(result)
    if result is None:
        raise function.failures.misused(function, WANTS_VALUE, cell)
    return _several(result, function, Issue, WANTS_VALUE)


def _issue_of_code(code: str) -> Issue | None:
    try:
        return Issue(code)
    except Misuse:
        return None
