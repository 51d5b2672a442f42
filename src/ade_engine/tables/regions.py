"""Describe where the tables of a sheet are: the result of the table finder.

Row and column numbers are those of the sheet, 1-based and absolute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ade_engine.sheets.arrays import BoolArray
from ade_engine.sheets.coordinates import Range
from ade_engine.tables.spans import RowSpans

if TYPE_CHECKING:
    from ade_engine.sheets.cells import Block


class RowKind(StrEnum):
    """The kind of a row; a config package may add row types, whose rows are skipped."""

    HEADER = "header"
    DATA = "data"
    TOTAL = "total"
    GROUP = "group"
    NOTE = "note"
    PREAMBLE = "preamble"
    FOOTER = "footer"
    REPEATED_HEADER = "repeated_header"
    BLANK = "blank"


class TableShape(StrEnum):
    """The layout of a table."""

    HEADED = "headed"
    HEADERLESS = "headerless"
    KEY_VALUE = "key_value"


@dataclass(frozen=True)
class Contribution:
    """What one rule contributed to a decision."""

    rule: str
    delta: float

    def as_json(self) -> dict[str, str | float]:
        return {"rule": self.rule, "delta": self.delta}


@dataclass(frozen=True)
class TableRegion:
    """One table: its header, its data rows, and the rows between and around them.

    `range` covers header and data, `data_range` the data alone (None if there is none). Rows that
    are neither header nor data are in `skipped` by kind, including those above and below the range
    that belong to no other table. `confidence` is that of the header.
    """

    range: Range
    columns: tuple[int, ...]
    header_rows: tuple[int, ...]
    header: tuple[str, ...]
    data_rows: RowSpans
    skipped: Mapping[str, RowSpans] = field(default_factory=dict)
    shape: TableShape = TableShape.HEADED
    confidence: float = 1.0
    why: tuple[Contribution, ...] = ()

    @property
    def data_range(self) -> Range | None:
        """Return the range from the first to the last data row."""
        if not self.data_rows:
            return None
        first, last = self.data_rows.first, self.data_rows.last
        return Range(first, self.range.first_column, last, self.range.last_column)

    @property
    def header_row(self) -> int | None:
        """Return the last row of the header, which is directly above the data."""
        return self.header_rows[-1] if self.header_rows else None

    def data_mask(self, block: Block) -> BoolArray:
        """Mark the rows of a block that are data of this table."""
        return self.data_rows.mask(block.first_row, block.height)

    def headers(self) -> Iterator[tuple[int, str]]:
        """Pair each column with its joined header text ("" where there is none)."""
        return zip(self.columns, self.header, strict=True)


@dataclass(frozen=True)
class SheetTables:
    """All tables of a sheet in reading order, and the rows that belong to no table."""

    tables: tuple[TableRegion, ...] = ()
    unused: Mapping[str, RowSpans] = field(default_factory=dict)
