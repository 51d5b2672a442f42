"""Read the header text of each column: rows are joined, merged cells apply to all columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from ade_engine.sheets.coordinates import Range
from ade_engine.tables.sample import SheetCells

JOINED_BY = " "

CellTexts = dict[tuple[int, int], str]


def header_texts(sheet: SheetCells, rows: Sequence[int], columns: Sequence[int]) -> tuple[str, ...]:
    """Join the texts of the header rows above each column, from top to bottom."""
    if not rows:
        return ("",) * len(columns)
    cells = _cells(sheet, rows)
    merged = [one for one in sheet.merged if one.first_row <= rows[-1] and one.last_row >= rows[0]]
    if merged:
        _spread_merged(cells, merged, rows, columns)
    else:
        _spread_right(cells, rows, columns)
    return tuple(_joined([cells.get((row, column), "") for row in rows]) for column in columns)


def text_of(value: object) -> str:
    """Convert the value of a header cell to text: a year is 2007, not 2007.0."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return " ".join(str(value).split())


def _cells(sheet: SheetCells, rows: Sequence[int]) -> CellTexts:
    wanted = set(rows)
    return {
        (row, column): text_of(value)
        for block in sheet.blocks(rows[0], rows[-1])
        for row, values in block.values()
        if row in wanted
        for column, value in values.items()
        if text_of(value)
    }


def _spread_merged(
    cells: CellTexts, merged: Sequence[Range], rows: Sequence[int], columns: Sequence[int]
) -> None:
    """Copy the text of the first cell of each merged range to all of its cells."""
    for one in merged:
        text = cells.get((one.first_row, one.first_column))
        if text is None:
            continue
        for row in rows:
            if one.first_row <= row <= one.last_row:
                for column in columns:
                    if one.first_column <= column <= one.last_column:
                        cells.setdefault((row, column), text)


def _spread_right(cells: CellTexts, rows: Sequence[int], columns: Sequence[int]) -> None:
    """Copy the texts of upper header rows to the empty cells on their right, as merging would.

    A row whose only text is in the first column is a title and is not copied.
    """
    for place, row in enumerate(rows[:-1]):
        texts = [cells.get((row, column), "") for column in columns]
        if not any(texts[1:]):
            continue
        above = ""
        for column, text in zip(columns, texts, strict=True):
            if text:
                above = text
            elif above and _named_below(cells, rows[place + 1 :], column):
                cells[row, column] = above


def _named_below(cells: Mapping[tuple[int, int], str], rows: Sequence[int], column: int) -> bool:
    return any((row, column) in cells for row in rows)


def _joined(parts: Sequence[str]) -> str:
    """Join the distinct texts."""
    return JOINED_BY.join(dict.fromkeys(part for part in parts if part))
