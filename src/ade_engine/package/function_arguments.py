"""The other arguments of an author's functions: `ctx`, `table`, `mapping` and `row`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ade_engine.package.author_errors import Misuse
from ade_engine.package.column import Column
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellError


@dataclass(frozen=True)
class Context:
    """The context of a job: `ctx`.

    `settings` is the `[author]` part of config.toml; `state` is a dict for the author's own use,
    shared by all functions of one job.
    """

    job_id: str = ""
    input_name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


class Table:
    """The current table: `table`.

    `table["field"]` is the column of a mapped field: the current chunk in `transform_column` and
    `validate_column`, all rows in `validate_table`. `get` returns None for an unmapped field.
    """

    def __init__(
        self,
        *,
        number: int,
        sheet: str,
        range: str,
        headers: Mapping[str, str],
        fields: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
        column: Callable[[str], Column] | None = None,
        stated: Callable[[str], float | None] | None = None,
    ) -> None:
        self.number = number
        self.sheet = sheet
        self.range = range
        self.headers = headers
        self.fields = fields
        self._known = known
        self._column = column
        self._stated = stated

    def __repr__(self) -> str:
        return f"<Table {self.number} {self.sheet}!{self.range}>"

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def __getitem__(self, name: str) -> Column:
        if name not in self.fields:
            raise Misuse(self._unmapped(name))
        if self._column is None:
            raise Misuse("the columns of fields are available once the table is mapped")
        return self._column(name)

    def _unmapped(self, name: object) -> str:
        """Say that a field is not mapped; a name that is no field may be the value of a cell."""
        for known in self._known:
            if known == name:
                return f"no column of this table is mapped to {known}; use table.get({known!r})"
        return "the package has no field of that name; use table.get(...)"

    def get(self, name: str) -> Column | None:
        """Return the column of a field, or None if it was not mapped."""
        return self[name] if name in self.fields else None

    def stated_total(self, name: str) -> float | None:
        """Return the number in the table's last total row, or None if there is none."""
        return self._stated(name) if self._stated is not None and name in self.fields else None


class TableMapping:
    """The mapping of a table: `mapping`; a hook may change it.

    `targets` is {field: letters of its column}, `headers` is {letters: header}, `fields` are all
    fields of the package, and `missing` are the required fields that are not mapped.
    """

    def __init__(
        self,
        targets: Mapping[str, str],
        headers: Mapping[str, str],
        fields: tuple[str, ...],
        required: tuple[str, ...],
    ) -> None:
        self.targets = dict(targets)
        self.headers = dict(headers)
        self.fields = fields
        self._required = required

    @property
    def missing(self) -> tuple[str, ...]:
        """List the required fields that are not mapped."""
        return tuple(name for name in self._required if name not in self.targets)

    def assign(self, name: str, column: str) -> None:
        """Map a column, given by its letters, to a field; earlier mappings of both are dropped."""
        if name not in self.fields:
            raise Misuse("mapping.assign: the package has no such field")
        if column not in self.headers:
            raise Misuse('mapping.assign: the table has no such column; use letters, as in "B"')
        self.targets = {one: held for one, held in self.targets.items() if held != column}
        self.targets[name] = column

    def release(self, name: str) -> None:
        """Leave a field unmapped."""
        self.targets.pop(name, None)


class RowValues:
    """The values of some rows by field, extracted from their columns on first access."""

    def __init__(self, columns: Mapping[str, Any], numbers: IntArray) -> None:
        self._columns = columns
        self._numbers = numbers
        self._values: dict[str, list[object]] = {}

    def value(self, name: str, index: int) -> object:
        if name not in self._values:
            self._values[name] = self._columns[name].values()
        value = self._values[name][index]
        return None if isinstance(value, CellError) else value

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def number(self, index: int) -> int:
        return int(self._numbers[index])


class Row(Mapping[str, object]):
    """The current row by field: `row`; `row.number` is its number in the sheet."""

    __slots__ = ("_index", "_rows")

    def __init__(self, rows: RowValues, index: int) -> None:
        self._rows = rows
        self._index = index

    def __getitem__(self, name: str) -> object:
        if name not in self._rows:
            raise KeyError(name)
        return self._rows.value(name, self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return sum(1 for _ in self._rows)

    def __repr__(self) -> str:
        return f"<Row {self.number}>"  # never a value

    @property
    def number(self) -> int:
        """Return the row's number in the sheet, 1-based."""
        return self._rows.number(self._index)
