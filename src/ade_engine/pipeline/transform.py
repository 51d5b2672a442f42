"""Convert cells to the declared types of their fields, then apply the author's transforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ade_engine.package.author_errors import Misuse
from ade_engine.package.config_package import FieldRules
from ade_engine.package.conversion import changed_cells, to_type, with_texts
from ade_engine.package.function_arguments import RowValues
from ade_engine.package.result_coercion import cells_of_result
from ade_engine.pipeline.apply_per_value import CELL_TYPES, ApplyPerValue
from ade_engine.pipeline.chunk import Chunk
from ade_engine.pipeline.mapped_table import Columns, MappedTable
from ade_engine.pipeline.python_values import cells_of_values
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellArray, CellKind


@dataclass
class Transform:
    """Transform the chunks of one table, counting the cells that change.

    Every transform receives the other fields as they were before any transform, so that the order
    of the fields does not matter.
    """

    table: MappedTable
    rules: tuple[FieldRules, ...]
    arguments: dict[str, Any]
    changed: dict[str, int] = field(default_factory=dict)
    _each: dict[str, ApplyPerValue] = field(default_factory=dict)

    def __call__(self, chunk: Chunk, show: Callable[[Columns], None]) -> Columns:
        """Return the transformed columns; `show` makes the typed ones available as `table[...]`."""
        before = {rules.name: self._typed(rules, chunk) for rules in self.rules}
        show(before)
        rows = RowValues(before, chunk.rows)
        after: Columns = {}
        for rules in self.rules:
            cells = self._transformed(rules, before[rules.name], rows, chunk.rows)
            raw = chunk.cells(self.table.targets[rules.name])
            self.changed[rules.name] = self.changed.get(rules.name, 0) + changed_cells(raw, cells)
            after[rules.name] = cells
        return after

    def _typed(self, rules: FieldRules, chunk: Chunk) -> CellArray:
        number = self.table.targets[rules.name]
        return to_type(chunk.cells(number), rules.field.type, self.table.notations.of(number))

    def _transformed(
        self, rules: FieldRules, cells: CellArray, rows: RowValues, numbers: IntArray
    ) -> CellArray:
        arguments = {**self.arguments, "field": rules.field}
        whole = rules.functions.get("transform_column")
        if whole is not None:
            made = whole({**arguments, "column": self.table.column(rules.name, cells)})
            try:
                return _without_blanks(cells_of_result(made, len(cells)))
            except Misuse as misuse:
                wants = str(misuse)
            raise whole.failures.misused(whole, wants)
        single = rules.functions.get("transform")
        if single is None:
            return cells
        each = self._each.setdefault(rules.name, ApplyPerValue(single, arguments))
        results = each.results(
            cells, rows, lambda index: self.table.cell(rules.name, int(numbers[index]))
        )
        made_cells = cells_of_values(results)
        if made_cells is None:
            raise single.failures.misused(single, CELL_TYPES)
        return _without_blanks(_keep_errors(cells, made_cells))


def _without_blanks(cells: CellArray) -> CellArray:
    """Replace empty texts by empty cells."""
    if not cells.is_kind(CellKind.TEXT).any():
        return cells
    return with_texts(cells, cells.text)


def _keep_errors(before: CellArray, after: CellArray) -> CellArray:
    """Restore errors and formulas without a result, for which no function was called."""
    lost = before.is_kind(CellKind.ERROR, CellKind.NO_VALUE)
    if not lost.any():
        return after
    return CellArray(
        np.where(lost, before.kinds, after.kinds),
        np.where(lost, np.nan, after.numbers),
        before.text.zip_with(pl.Series(lost), after.text),
    )
