"""Call an author's function for each value of a chunk, and put what it gave back into cells.

A function that declares `value` alone is taken to be a function of that value: it is called once
for each different value, as long as there are not too many to remember. Empty cells are not given
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ade_engine.package.functions import AuthorFunction
from ade_engine.package.views import Row, Rows
from ade_engine.sheets.cells import CellKind
from ade_engine.sheets.cells import Column as Cells

REMEMBERED_MAX = 100_000
CELL_TYPES = "It must give back text, a number, True or False, a date, a time or None."


@dataclass
class EachValue:
    """Call one function for the values of chunk after chunk."""

    function: AuthorFunction
    given: Mapping[str, Any]
    _known: dict[Any, Any] = field(default_factory=dict)

    def results(self, cells: Cells, rows: Rows, cell_of: Callable[[int], str]) -> list[Any]:
        """Give what the function gives back for each cell, None for an empty one."""
        values = _values(cells)
        steps = self._steps(values, rows, _can_remember(cells))
        results: list[Any] = []
        try:
            results.extend(steps)  # keeps what came before an exception, which tells the cell
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed = self.function.failures.of(error, self.function, cell_of(len(results)))
        else:
            return results
        raise failed

    def _steps(self, values: list[Any], rows: Rows, remembers: bool) -> Iterator[Any]:
        function, parameters = self.function.function, self.function.parameters
        if parameters == ("value",):
            return self._remembered(values) if remembers else self._plain(values)
        fixed = {name: self.given[name] for name in parameters if name not in ("value", "row")}
        wants_value, wants_row = "value" in parameters, "row" in parameters

        def called(index: int, value: Any) -> Any:
            if value is None and wants_value:
                return None
            own = {"value": value} if wants_value else {}
            if wants_row:
                own["row"] = Row(rows, index)
            return function(**own, **fixed)

        return (called(index, value) for index, value in enumerate(values))

    def _plain(self, values: list[Any]) -> Iterator[Any]:
        function = self.function.function
        return (None if value is None else function(value=value) for value in values)

    def _remembered(self, values: list[Any]) -> Iterator[Any]:
        function, known = self.function.function, self._known
        if len(known) > REMEMBERED_MAX:
            known.clear()
        known[None] = None
        for value in values:
            if value in known:
                yield known[value]
            else:
                known[value] = result = function(value=value)
                yield result


def _can_remember(cells: Cells) -> bool:
    """Tell whether equal values are the same: True and 1 are equal, too, and are not."""
    return not (cells.is_kind(CellKind.BOOL).any() and cells.is_kind(CellKind.NUMBER).any())


def _values(cells: Cells) -> list[Any]:
    if not np.any(cells.kinds > CellKind.TEXT):
        return cells.text.to_list()
    return cells.values()


def cells_of_results(results: list[Any]) -> Cells | None:
    """Put results into cells; None if one of them is nothing that a cell can hold."""
    try:
        if not all(type(result) is str or result is None for result in results):
            return Cells.of(results)
        text = pl.Series(results, dtype=pl.String)
    except (TypeError, ValueError, OverflowError):
        return None
    kinds = np.where(text.is_null().to_numpy(), np.uint8(0), np.uint8(CellKind.TEXT))
    return Cells(kinds, np.full(len(text), np.nan), text)
