"""Convert between A1 references and row and column numbers, which are absolute and 1-based."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

ROWS_MAX = 1_048_576
COLUMNS_MAX = 16_384

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})")


@cache  # at most one entry for each column that a sheet can have
def column_letters(column: int) -> str:
    """Return the letters of a column: 1 is A, 28 is AB."""
    if not 1 <= column <= COLUMNS_MAX:
        raise ValueError(f"column {column} is not between 1 and {COLUMNS_MAX}")
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """Return the number of a column: A is 1, AB is 28."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z":
            raise ValueError(f"{letters!r} are not the letters of a column")
        number = number * 26 + ord(letter) - ord("A") + 1
    if not 1 <= number <= COLUMNS_MAX:
        raise ValueError(f"{letters!r} are not the letters of a column")
    return number


def a1(row: int, column: int) -> str:
    """Return the A1 reference of a cell: row 3, column 2 is B3."""
    return f"{column_letters(column)}{row}"


def parse_a1(reference: str) -> tuple[int, int]:
    """Parse an A1 reference into (row, column); `$` is ignored."""
    found = _REFERENCE.fullmatch(reference)
    if found is None or int(found[2]) > ROWS_MAX:
        raise ValueError(f"{reference!r} is not an A1 reference")
    return int(found[2]), column_number(found[1])


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A rectangle of cells, both corners included."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    def __post_init__(self) -> None:
        if not 1 <= self.first_row <= self.last_row:
            raise ValueError(f"rows {self.first_row} to {self.last_row} are not a range")
        if not 1 <= self.first_column <= self.last_column:
            raise ValueError(f"columns {self.first_column} to {self.last_column} are not a range")

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parse `B3:D9`, `$B$3:$D$9` or a single cell; the corners may be in any order."""
        first, _, last = text.partition(":")
        top, left = parse_a1(first)
        bottom, right = parse_a1(last or first)
        return cls(min(top, bottom), min(left, right), max(top, bottom), max(left, right))

    def __str__(self) -> str:
        first = a1(self.first_row, self.first_column)
        last = a1(self.last_row, self.last_column)
        return first if first == last else f"{first}:{last}"
