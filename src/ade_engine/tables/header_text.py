"""Read the texts of a header: one for each column, rows joined, merged cells spread."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from ade_engine.sheets.coordinates import Range
from ade_engine.tables.sample import SheetCells

JOINED_BY = " "

CellTexts = dict[tuple[int, int], str]


def header_texts(sheet: SheetCells, rows: Sequence[int], columns: Sequence[int]) -> tuple[str, ...]:
    """Join what stands in the header rows above each column, from top to bottom."""
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
    """Write a header cell's value as text: a year is 2007, not 2007.0."""
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
    """Return every cell of a merged range the text of its first."""
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
    """Let a text of an upper header row stand for the columns right of it, as merging would.

    A row whose only text is its first cell is a title and stays where it is.
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
    """Join texts, each once."""
    return JOINED_BY.join(dict.fromkeys(part for part in parts if part))
