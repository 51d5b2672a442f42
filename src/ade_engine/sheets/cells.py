"""Store cells in columns, so that no code has to handle one cell at a time.

A `Block` is a few thousand consecutive rows of a sheet. Each of its columns is a `CellArray`, which
holds a kind, a number and a text for every row. Rows that no block covers, and columns that a block
does not have, are empty.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  sheets know no time zones
DAY_MS = 86_400_000
TIME_DAY = dt.date(1899, 12, 31)  # a DATE on this day is a time of day
TIME_DAY_MS = (TIME_DAY - EPOCH.date()).days * DAY_MS
INTEGERS_MAX = 2**53  # floats represent every integer exactly up to here


class CellKind(IntEnum):
    """What a cell holds."""

    EMPTY = 0
    TEXT = 1
    NUMBER = 2
    BOOL = 3
    DATE = 4
    ERROR = 5
    NO_VALUE = 6  # a formula whose result is not in the file


@dataclass(frozen=True, slots=True)
class CellError:
    """The value of a cell that shows an error, such as `#REF!`."""

    code: str

    def __str__(self) -> str:
        return self.code


class CellArray:
    """Consecutive cells of one column; immutable, and cheap to slice.

    `numbers` holds a NUMBER, a BOOL as 0 or 1, and a DATE as milliseconds since 1970-01-01 without
    a time zone; it is NaN elsewhere. `text` holds a TEXT and the code of an ERROR; it is null
    elsewhere.
    """

    __slots__ = ("kinds", "numbers", "text")

    def __init__(self, kinds: ByteArray, numbers: FloatArray, text: pl.Series) -> None:
        self.kinds = kinds
        self.numbers = numbers
        self.text = text

    @classmethod
    def empty(cls, height: int) -> CellArray:
        """Make an array of empty cells."""
        text = pl.Series(dtype=pl.String).extend_constant(None, height)
        return cls(np.zeros(height, np.uint8), np.full(height, np.nan), text)

    @classmethod
    def of(cls, values: Iterable[object]) -> CellArray:
        """Make an array from Python values; the inverse of `values`."""
        split = [split_value(value) for value in values]
        return cls(
            np.array([kind for kind, _, _ in split], np.uint8),
            np.array([number for _, number, _ in split], np.float64),
            pl.Series([text for _, _, text in split], dtype=pl.String),
        )

    @classmethod
    def joined(cls, parts: Sequence[CellArray]) -> CellArray:
        """Concatenate arrays."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            pl.concat([part.text for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.kinds)

    def slice(self, start: int, stop: int) -> CellArray:
        """Return the cells `start:stop` without copying them."""
        start, stop, _ = slice(start, stop).indices(len(self))
        return CellArray(
            self.kinds[start:stop],
            self.numbers[start:stop],
            self.text.slice(start, max(stop - start, 0)),
        )

    def where(self, mask: BoolArray) -> CellArray:
        """Return only the cells where the mask is true."""
        return CellArray(self.kinds[mask], self.numbers[mask], self.text.filter(pl.Series(mask)))

    def is_kind(self, *kinds: CellKind) -> BoolArray:
        """Return a mask of the cells that are of one of these kinds."""
        marked: BoolArray = self.kinds == kinds[0]
        for kind in kinds[1:]:
            marked |= self.kinds == kind
        return marked

    def values(self) -> list[object]:
        """Return Python values: None, str, int, float, bool, date, datetime, time or CellError.

        A formula without a result is None, like an empty cell; `kinds` tells them apart.
        """
        texts = self.text.to_list()
        return [
            _value(kind, number, text)
            for kind, number, text in zip(
                self.kinds.tolist(), self.numbers.tolist(), texts, strict=True
            )
        ]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CellArray)
            and np.array_equal(self.kinds, other.kinds)
            and np.array_equal(self.numbers, other.numbers, equal_nan=True)
            and self.text.equals(other.text, null_equal=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.kinds, return_counts=True)
        found = zip(kinds.tolist(), counts.tolist(), strict=True)
        shown = ", ".join(f"{count} {CellKind(kind).name.lower()}" for kind, count in found)
        return f"<CellArray of {len(self)}: {shown}>"  # never a value


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive rows of a sheet."""

    first_row: int
    height: int
    columns: dict[int, CellArray]

    @property
    def last_row(self) -> int:
        """Return the number of the last row."""
        return self.first_row + self.height - 1

    def column(self, number: int) -> CellArray:
        """Return a column, or empty cells if the block does not have it."""
        found = self.columns.get(number)
        return CellArray.empty(self.height) if found is None else found

    def rows(self, first_row: int, last_row: int) -> Block:
        """Return the part of the block from `first_row` to `last_row`, both included."""
        start = max(first_row - self.first_row, 0)
        stop = max(min(last_row - self.first_row + 1, self.height), start)
        cut = {number: column.slice(start, stop) for number, column in self.columns.items()}
        return Block(
            self.first_row + start,
            stop - start,
            {number: column for number, column in cut.items() if column.kinds.any()},
        )

    def values(self) -> Iterator[tuple[int, dict[int, object]]]:
        """Yield (row number, {column number: value}) for each row; slow, meant for few rows."""
        columns = {number: column.values() for number, column in sorted(self.columns.items())}
        for index in range(self.height):
            cells = {number: values[index] for number, values in columns.items()}
            yield (
                self.first_row + index,
                {number: value for number, value in cells.items() if value is not None},
            )


def date_ms(value: dt.date | dt.time) -> float:
    """Return a date, datetime or time of day as the number that a DATE cell holds."""
    if isinstance(value, dt.time):
        value = dt.datetime.combine(TIME_DAY, value)
    elif not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    return float(round((value.replace(tzinfo=None) - EPOCH) / dt.timedelta(milliseconds=1)))


def date_value(ms: float) -> dt.date | dt.time:
    """Return the date, datetime or time of day that the number of a DATE cell denotes."""
    moment = EPOCH + dt.timedelta(milliseconds=ms)
    if moment.date() == TIME_DAY:
        return moment.time()
    return moment.date() if moment.time() == dt.time() else moment


def _value(kind: int, number: float, text: str | None) -> object:
    match kind:
        case CellKind.TEXT:
            return text
        case CellKind.NUMBER:
            whole = abs(number) < INTEGERS_MAX and number.is_integer()
            return int(number) if whole else number
        case CellKind.BOOL:
            return number != 0
        case CellKind.DATE:
            return date_value(number)
        case CellKind.ERROR:
            return CellError(text or "")
        case _:
            return None


def split_value(value: Any) -> tuple[int, float, str | None]:
    """Return the kind, the number and the text of a cell that holds this value."""
    match value:
        case None:
            return CellKind.EMPTY, np.nan, None
        case bool():
            return CellKind.BOOL, float(value), None
        case str():
            return CellKind.TEXT, np.nan, value
        case CellError():
            return CellKind.ERROR, np.nan, value.code
        case dt.date() | dt.time():
            return CellKind.DATE, date_ms(value), None
        case dt.timedelta():
            return CellKind.NUMBER, value / dt.timedelta(days=1), None
        case _:
            return CellKind.NUMBER, float(value), None
