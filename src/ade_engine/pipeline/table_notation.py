"""Decide the notation of each column of a table from all of its rows, before one is converted.

The rows are read an extra time for that, but only the blocks in which a column in question holds
text, and only those columns.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ade_engine.package.notation import (
    DateEvidence,
    DecimalEvidence,
    Preference,
    UnitEvidence,
)
from ade_engine.pipeline.chunk import chunks
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.workbook import Sheet, Workbook
from ade_engine.tables.regions import TableRegion

DAY_FIRST_EXCEPT = ("US", "PH")  # countries that write 02/13/2024
DECIMAL_POINT = ("en", "zh", "ja", "ko", "th", "he", "hi", "ms")  # languages


@dataclass
class TableNotations:
    """The notations of the columns of one table, by column number."""

    sheet: Sheet
    region: TableRegion
    preference: Preference
    hidden_rows: IntArray | None = None
    dates: dict[int, DateEvidence] = field(default_factory=dict)
    decimals: dict[int, DecimalEvidence] = field(default_factory=dict)
    units: dict[int, UnitEvidence] = field(default_factory=dict)

    def of(self, column: int) -> ColumnNotation:
        """Return the notation of a column, which is decided when it is first needed."""
        return ColumnNotation(self, column)

    def read(self, dates: Collection[int], numbers: Collection[int]) -> None:
        """Read the evidence of columns of dates and of numbers in one pass."""
        new_dates = {column: DateEvidence() for column in dates if column not in self.dates}
        new_decimals = {
            column: DecimalEvidence() for column in numbers if column not in self.decimals
        }
        new_units = {column: UnitEvidence() for column in new_decimals}
        self.dates |= new_dates
        self.decimals |= new_decimals
        self.units |= new_units
        wanted = {*new_dates, *new_decimals}
        rows = self.region.data_rows
        if not wanted or not rows:
            return
        blocks = self.sheet.blocks(rows.first, rows.last, text_of=frozenset(wanted))
        for chunk in chunks(self.region, blocks, self.hidden_rows):
            for found in (new_dates, new_decimals, new_units):
                for column, evidence in found.items():
                    evidence.add(chunk.cells(column))


@dataclass(frozen=True)
class ColumnNotation:
    """The notation of one column of a table."""

    table: TableNotations
    column: int

    @property
    def preference(self) -> Preference:
        """Return what holds where the column does not tell."""
        return self.table.preference

    @property
    def decimal(self) -> str:
        """Return the decimal sign of the column."""
        if self.column not in self.table.decimals:
            self.table.read((), (self.column,))
        return self.table.decimals[self.column].decimal(self.preference)

    @property
    def day_first(self) -> bool:
        """Return whether the day comes first in the column."""
        if self.column not in self.table.dates:
            self.table.read((self.column,), ())
        return self.table.dates[self.column].day_first(self.preference)


def convention_of(book: Workbook) -> Preference:
    """Return how numbers and dates are probably written where the file was made.

    Spreadsheet programs separate the cells of a text file by semicolons where the comma is the
    decimal sign; all of these places write the day before the month.
    """
    if book.delimiter == ";":
        return Preference(",", True)
    if not book.language:
        return Preference(epoch_1904=book.epoch_1904)
    language, _, country = book.language.partition("-")
    return Preference(
        "." if language.lower() in DECIMAL_POINT else ",",
        country.upper() not in DAY_FIRST_EXCEPT if country else None,
        book.epoch_1904,
    )
