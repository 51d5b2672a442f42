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


class SkipReason(StrEnum):
    """Why a row is left out of the data."""

    ADDS_UP = "adds_up"  # its numbers are sums of rows above
    SAYS_TOTAL = "says_total"  # its label is a total word, and its cells agree
    AFTER_DATA = "after_data"  # below the data, and not like it
    PAGE_FOOTER = "page_footer"  # "Page 2 of 7"
    SINGLE_CELL = "single_cell"  # a title, a heading or a remark
    SAME_HEADER = "same_header"  # the header again
    ROW_DETECTOR = "row_detector"  # a row detector of the config package
    MODEL = "model"  # the row looks like its kind
    NO_CELLS = "no_cells"


class TableShape(StrEnum):
    """The layout of a table."""

    HEADED = "headed"
    HEADERLESS = "headerless"
    KEY_VALUE = "key_value"


class Doubt(StrEnum):
    """Why a person should look at a table."""

    HEADER = "header_uncertain"
    SIDE_BY_SIDE = "side_by_side_uncertain"  # one table with a gap, or two tables
    AFTER_DATA = "rows_after_data"  # several rows with values below the data, not like it


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
    are neither header nor data are in `skipped` by kind, and in `reasons` by the reason for leaving
    them out, including those above and below the range that belong to no other table. `confidence`
    is the probability that the header, or that there is none, is right. `doubts` says what a person
    should check.
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
    reasons: Mapping[str, RowSpans] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()

    @property
    def needs_review(self) -> bool:
        """Return whether a person should check the table."""
        return bool(self.doubts)

    @property
    def header_is_certain(self) -> bool:
        """Return whether the header may be recorded: a doubtful one may be a row of data."""
        return Doubt.HEADER not in self.doubts

    @property
    def recorded_header(self) -> tuple[str, ...]:
        """Return the header's texts for records, empty if the header may be a row of data."""
        return self.header if self.header_is_certain else ("",) * len(self.header)

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
