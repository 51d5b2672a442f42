"""Return the first rows of one sheet for display, without finding tables."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.errors import EngineError
from ade_engine.sheets.cells import Block, CellError
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.workbook import Sheet, Workbook, open_workbook

COLUMNS_MAX = 100
CELL_CHARACTERS_MAX = 200
CHARACTERS_MAX = 400_000  # of all cells together; further rows are left out
SHEETS_SHOWN_MAX = 200


class NoSuchSheet(EngineError):
    """The workbook has no sheet of this name or number."""

    code = "no_such_sheet"
    advice = "Use the name of a sheet, or its number counted from 1."


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Return up to `rows` rows of the sheet `sheet`; an unreadable file gives an `error` result.

    Without a name, it is the first sheet that is not hidden.
    """
    try:
        with open_workbook(Path(inputs["input"])) as book:
            return _shown(book, _chosen(book, inputs.get("sheet")), int(inputs["rows"]))
    except EngineError as error:
        return {"error": {"code": error.code, "message": str(error)}}


def _chosen(book: Workbook, wanted: str | None) -> Sheet:
    if wanted is None:
        return next((sheet for sheet in book.sheets if not sheet.hidden), book.sheets[0])
    for sheet in book.sheets:
        if sheet.name == wanted:
            return sheet
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(book.sheets):
        return book.sheets[int(wanted) - 1]
    raise NoSuchSheet("the workbook has no such sheet")


def _shown(book: Workbook, sheet: Sheet, rows_max: int) -> dict[str, Any]:
    head = sheet.head(rows_max)
    blocks = [block.rows(1, rows_max) for block in head]
    width = max((max(block.columns, default=0) for block in blocks), default=0)
    columns = min(width, COLUMNS_MAX)
    rows, whole = _rows(blocks, columns)
    return {
        "format": book.format,
        "sheets": [
            {"name": one.name, "hidden": one.hidden} for one in book.sheets[:SHEETS_SHOWN_MAX]
        ],
        "sheet": sheet.name,
        "first_row": 1,
        "columns": [column_letters(number) for number in range(1, columns + 1)],
        "rows": rows,
        "more_rows": any(block.last_row > rows_max for block in head),
        "cut": not whole or width > columns,
    }


def _rows(blocks: list[Block], columns: int) -> tuple[list[list[Any]], bool]:
    """Return the rows, including empty ones, and whether none was left out."""
    found: list[list[Any]] = []
    characters = 0
    for block in blocks:
        for number, cells in block.values():
            found += [[None] * columns for _ in range(number - len(found) - 1)]
            row = [_json_value(cells.get(column)) for column in range(1, columns + 1)]
            characters += sum(len(str(cell)) for cell in row)
            if characters > CHARACTERS_MAX:
                return found, False
            found.append(row)
    return found, True


def _json_value(value: object) -> Any:
    """Convert a cell's value to JSON."""
    match value:
        case str():
            return value if len(value) <= CELL_CHARACTERS_MAX else value[:CELL_CHARACTERS_MAX] + "…"
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case CellError():
            return value.code
        case _:
            return str(value)[:CELL_CHARACTERS_MAX]
