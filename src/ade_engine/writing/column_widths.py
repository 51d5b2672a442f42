"""Measure how wide the columns of a sheet must be to show their cells."""

from __future__ import annotations

import numpy as np
import polars as pl

from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.writing.styles import DECIMALS_MAX, NumberFormat

WIDTH_MIN = 6.0
TEXT_WIDTH_MAX = 60.0  # a longer text is cut off at its column's edge where a cell follows
USUAL_TEXT_WIDTH = 30.0  # up to here, a column is as wide as its longest text
HEADER_WIDTH_MAX = 40.0  # a longer header wraps
FILTER_BUTTON = 3.0
PADDING = 1.8
BOLD = 1.1
DATE_WIDTH, MOMENT_WIDTH = 11.0, 20.0
GENERAL_WIDTH = 12.0
_DAY_MS = 86_400_000


class ColumnWidth:
    """Grow with the widest cell of a column, so that no number or date is shown as `###`."""

    def __init__(self, header: str, numbers: NumberFormat, date_format: str) -> None:
        needed = _header_width(header)
        self._header = needed
        self._cells = WIDTH_MIN
        self._numbers = numbers
        self._low = self._high = 0.0
        self._date = float(len(date_format)) + 1 if date_format else DATE_WIDTH

    def see(self, cells: CellArray, text_bytes_max: int) -> None:
        """Take note of some cells; no text is longer than `text_bytes_max`."""
        if text_bytes_max > self._cells:
            self._cells = max(self._cells, _text_width(cells.text, text_bytes_max))
        kinds = cells.kinds
        present = np.bincount(kinds, minlength=len(CellKind))
        if present[CellKind.NUMBER]:
            numbers = cells.numbers if present[CellKind.NUMBER] == len(kinds) else None
            if numbers is None:
                numbers = cells.numbers[kinds == CellKind.NUMBER]
            self._numbers.see(numbers)
            self._low = min(self._low, float(np.nanmin(numbers)))
            self._high = max(self._high, float(np.nanmax(numbers)))
        if present[CellKind.DATE] and self._cells < MOMENT_WIDTH:
            dates = cells.numbers[kinds == CellKind.DATE]
            whole_days = (dates % _DAY_MS == 0).all()
            self._cells = max(self._cells, self._date if whole_days else MOMENT_WIDTH)

    @property
    def width(self) -> float:
        """Return the width in characters, as spreadsheet programs measure it."""
        numbers = max(_number_width(value, self._numbers) for value in (self._low, self._high))
        return round(max(self._header, self._cells, numbers) + PADDING, 1)


def _header_width(header: str) -> float:
    return min(len(header) * BOLD + FILTER_BUTTON, HEADER_WIDTH_MAX)


def _text_width(texts: pl.Series, bytes_max: int) -> float:
    """Return the width of the longest text, or of all but the longest tenth where that is much."""
    sizes, chars = texts.str.len_bytes(), texts.str.len_chars()
    # A Chinese character has three bytes and takes two places: the mean of bytes and characters.
    places = (sizes.cast(pl.Float64) + chars.cast(pl.Float64)) / 2
    longest = _float(places.max())
    if longest <= USUAL_TEXT_WIDTH:
        return longest
    most = _float(places.quantile(0.9, "higher"))
    return min(max(most, USUAL_TEXT_WIDTH), TEXT_WIDTH_MAX)


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _number_width(value: float, numbers: NumberFormat) -> float:
    if not np.isfinite(value):
        return GENERAL_WIDTH
    decimals = max(numbers.decimals, 2) if numbers.decimals else 0
    if decimals > DECIMALS_MAX or abs(value) >= 1e15:
        return GENERAL_WIDTH
    extra = len(numbers.code) - len("#,##0.00") if "[" in numbers.code or '"' in numbers.code else 0
    return min(len(f"{value:,.{decimals}f}") + max(extra, 0), TEXT_WIDTH_MAX)
