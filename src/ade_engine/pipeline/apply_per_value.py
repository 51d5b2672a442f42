"""Call an author's function for each value of a chunk.

A function that declares only `value` is treated as a pure function: its results are cached, so that
it is called once for each distinct value while the cache has room. It is not called for empty
cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ade_engine.package.function_arguments import Row, RowValues
from ade_engine.package.functions import AuthorFunction
from ade_engine.pipeline.python_values import values_of
from ade_engine.sheets.cells import CellArray, CellKind

CACHED_MAX = 100_000
CELL_TYPES = "It must return text, a number, True or False, a date, a time or None."


class _Cache(dict[Any, Any]):
    """Cache the results of a function; a hit runs no Python code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.reset()

    def reset(self) -> None:
        self.clear()
        self[None] = None

    def __missing__(self, value: Any) -> Any:
        result = self[value] = self._function(value=value)
        return result


@dataclass
class ApplyPerValue:
    """Call one function for the values of each chunk of a table."""

    function: AuthorFunction
    arguments: Mapping[str, Any]
    _cache: _Cache = field(init=False)

    def __post_init__(self) -> None:
        self._cache = _Cache(self.function.function)

    def results(
        self, cells: CellArray, rows: RowValues, cell_of: Callable[[int], str]
    ) -> list[Any]:
        """Return the result of the function for each cell, None for an empty cell."""
        steps = self._steps(values_of(cells), rows, _can_cache(cells))
        results: list[Any] = []
        try:
            results.extend(steps)  # keeps earlier results, whose count says which cell failed
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed = self.function.failures.of(error, self.function, cell_of(len(results)))
        else:
            return results
        raise failed

    def _steps(self, values: list[Any], rows: RowValues, cached: bool) -> Iterator[Any]:
        function, parameters = self.function.function, self.function.parameters
        if parameters == ("value",):
            if not cached:
                return (None if value is None else function(value=value) for value in values)
            if len(self._cache) > CACHED_MAX:
                self._cache.reset()
            return map(self._cache.__getitem__, values)
        fixed = {name: self.arguments[name] for name in parameters if name not in ("value", "row")}
        wants_value, wants_row = "value" in parameters, "row" in parameters

        def called(index: int, value: Any) -> Any:
            if value is None and wants_value:
                return None
            own = {"value": value} if wants_value else {}
            if wants_row:
                own["row"] = Row(rows, index)
            return function(**own, **fixed)

        return (called(index, value) for index, value in enumerate(values))


def _can_cache(cells: CellArray) -> bool:
    """Return whether values may be dictionary keys: True and 1 are equal but not the same."""
    return not (cells.is_kind(CellKind.BOOL).any() and cells.is_kind(CellKind.NUMBER).any())
