"""Call an author's function for each value of a chunk, and put what it gave back into cells.

A function that declares `value` alone is taken to be a function of that value: it is called once
for each different value, as long as there are not too many to remember. Empty cells are not given
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ade_engine.package.functions import AuthorFunction
from ade_engine.package.views import Row, RowValues
from ade_engine.pipeline.python_values import values_of
from ade_engine.sheets.cells import CellArray, CellKind

REMEMBERED_MAX = 100_000
CELL_TYPES = "It must give back text, a number, True or False, a date, a time or None."


class _Memory(dict[Any, Any]):
    """Remember what a function gave back; a hit costs no Python code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.forget()

    def forget(self) -> None:
        self.clear()
        self[None] = None

    def __missing__(self, value: Any) -> Any:
        result = self[value] = self._function(value=value)
        return result


@dataclass
class ApplyPerValue:
    """Call one function for the values of chunk after chunk."""

    function: AuthorFunction
    given: Mapping[str, Any]
    _memory: _Memory = field(init=False)

    def __post_init__(self) -> None:
        self._memory = _Memory(self.function.function)

    def results(
        self, cells: CellArray, rows: RowValues, cell_of: Callable[[int], str]
    ) -> list[Any]:
        """Return what the function gives back for each cell, None for an empty one."""
        steps = self._steps(values_of(cells), rows, _can_remember(cells))
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

    def _steps(self, values: list[Any], rows: RowValues, remembers: bool) -> Iterator[Any]:
        function, parameters = self.function.function, self.function.parameters
        if parameters == ("value",):
            if not remembers:
                return (None if value is None else function(value=value) for value in values)
            if len(self._memory) > REMEMBERED_MAX:
                self._memory.forget()
            return map(self._memory.__getitem__, values)
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


def _can_remember(cells: CellArray) -> bool:
    """Return whether equal values are the same: True and 1 are equal, too, and are not."""
    return not (cells.is_kind(CellKind.BOOL).any() and cells.is_kind(CellKind.NUMBER).any())
