"""Describe to people what was left out of the output: sheets, tables, columns and rows.

What was left out is counted in `ade_engine.record.skipped`. Here are the sentences about it, with
names that the artifact does not hold: they stand in the workbook, beside the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ade_engine.mapping.column_mapping import MappedColumn, Reason
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.record.run_events import RunEvent
from ade_engine.record.skipped import PartKind, SkippedPart, skipped_parts
from ade_engine.tables.regions import RowKind, TableShape

SPANS_SHOWN = 5
ROWS_SHOWN = {
    RowKind.TOTAL: "total rows",
    RowKind.GROUP: "group headings",
    RowKind.NOTE: "notes",
    RowKind.PREAMBLE: "rows above the header",
    RowKind.FOOTER: "rows below the data",
    RowKind.REPEATED_HEADER: "repeated headers",
    "hidden": "hidden rows",
    "outside_tables": "rows that belong to no table",
}
SHEETS_SHOWN = {
    "hidden": "The sheet is hidden; the setting hidden_sheets reads it.",
    "not_chosen": "The package does not read sheets of this name.",
    "beyond_limit": "The file has more sheets than are read.",
    "chart": "The sheet is a chart.",
    "dialog": "The sheet is a dialog.",
    "macro": "The sheet holds macros.",
    "missing": "The file names the sheet and does not have it.",
    "no_table": "The sheet has cells, but no table was found.",
}
TABLE_ROWS = "in_skipped_table"  # the line about their table counts them
WITHOUT_HEADER = {
    TableShape.HEADERLESS: "It has no header row, so its columns have no names. Add one.",
    TableShape.KEY_VALUE: "It is a form: its rows are names and values, and it has no header row.",
}
HIDDEN_COLUMN = "The column is hidden; the setting hidden_columns reads it."
COLUMNS_SHOWN = {
    Reason.EMPTY_HEADER: "The column has no header.",
    Reason.NO_SIGNAL: "No field matches this column.",
    Reason.BELOW_THRESHOLD: "No field matches this column well enough.",
    Reason.AMBIGUOUS: "Several fields match this column equally well.",
    Reason.DUPLICATE_FIELD: "Another column matches its field better.",
    Reason.RELEASED: "A hook of the package left it out.",
}


@dataclass(frozen=True)
class LeftOut:
    """Something that the output does not have: how much, why, and where it is in the input."""

    what: str
    reason: str
    message: str
    count: int
    sheet: str
    place: str = ""


def left_out(events: Iterable[RunEvent], tables: Iterable[PlannedTable]) -> Iterator[LeftOut]:
    """Yield what the settings, the table finder and the mapping left out."""
    by_number = {table.mapped.number: table for table in tables}
    for part in skipped_parts(events):
        table = by_number.get(part.table) if part.table is not None else None
        match part.kind:
            case PartKind.SHEETS:
                yield _sheet_left(part)
            case PartKind.TABLES if table is not None:
                yield _table_left(part, table)
            case PartKind.COLUMNS:
                yield from _columns_left(part, table)
            case PartKind.ROWS if part.reason != TABLE_ROWS:
                yield _rows_left(part)


def _sheet_left(part: SkippedPart) -> LeftOut:
    message = SHEETS_SHOWN.get(part.reason, "The sheet was not read.")
    return LeftOut("sheet", part.reason, message, part.count, part.sheet or "")


def _table_left(part: SkippedPart, table: PlannedTable) -> LeftOut:
    """Describe a table that is not written, with the number of its rows."""
    mapped = table.mapped
    needed, region = ", ".join(mapped.mapping.missing), mapped.region
    lacks = f"It lacks the required fields: {needed}." if needed else "No column has a field."
    why = (WITHOUT_HEADER.get(region.shape), lacks)
    rows, message = region.data_rows.count, " ".join(filter(None, why))
    return LeftOut("table", part.reason, message, rows, mapped.sheet, str(region.range))


def _columns_left(part: SkippedPart, table: PlannedTable | None) -> Iterator[LeftOut]:
    columns = {} if table is None else {one.letter: one for one in table.mapped.mapping.columns}
    for letters in part.ranges:
        column = columns.get(letters)
        if part.reason == "hidden" or column is None:
            reason, why = part.reason, HIDDEN_COLUMN
        else:
            reason, why = _why_unmapped(column)
        yield LeftOut("column", reason, why, 1, part.sheet or "", f"{letters}:{letters}")


def _why_unmapped(column: MappedColumn) -> tuple[str, str]:
    reason = column.reason or Reason.NO_SIGNAL
    why = COLUMNS_SHOWN.get(reason, "The column has no field.")
    named = f"“{column.header.strip()}”: " if column.header.strip() else ""
    return reason.value, named + why


def _rows_left(part: SkippedPart) -> LeftOut:
    what = ROWS_SHOWN.get(part.reason, f"rows of type {part.reason}")
    shown = [f"{one}:{one}" if one.isdigit() else one for one in part.ranges[:SPANS_SHOWN]]
    more = ["…"] if len(part.ranges) > SPANS_SHOWN or part.ranges_omitted else []
    place = ", ".join([*shown, *more])
    return LeftOut("rows", part.reason, f"Left out: {what}.", part.count, part.sheet or "", place)
