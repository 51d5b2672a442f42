"""First step: read the sheets that the settings select, and find their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ade_engine.package.config_package import Package, RowDetector
from ade_engine.package.function_arguments import Context
from ade_engine.package.package_settings import ReadingSettings
from ade_engine.record.run_events import EventName, Recorder
from ade_engine.sheets.workbook import Sheet
from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import SheetTables, TableRegion
from ade_engine.tables.row_detectors import RowScorer, SheetRow
from ade_engine.tables.spans import RowSpans


@dataclass(frozen=True)
class WorkbookTable:
    """A table and its sheet; tables are numbered across the whole file."""

    number: int
    sheet: Sheet
    region: TableRegion


def read_tables(
    sheets: list[Sheet], package: Package, ctx: Context, record: Recorder
) -> Iterator[WorkbookTable]:
    """Yield the tables of all sheets, and record where they are and why."""
    scorers = row_scorers(package, ctx)
    number = 0
    for sheet in sheets:
        reason = why_skipped(sheet.name, sheet.hidden, package.settings.reading)
        if reason is not None:
            record.emit(EventName.SHEET_SKIPPED, sheet=sheet.name, reason=reason)
            continue
        sheet.scan()
        found = find_tables(sheet, scorers)
        hidden = _hidden_columns(sheet, package.settings.reading)
        tables = [_without(table, hidden) for table in found.tables]
        numbered = [
            WorkbookTable(index, sheet, table) for index, table in enumerate(tables, number + 1)
        ]
        number += len(tables)
        record.emit(EventName.SHEET_READ, **_sheet_json(sheet, found, numbered))
        yield from numbered


def why_skipped(name: str, hidden: bool, reading: ReadingSettings) -> str | None:
    """Return why a sheet is skipped, or None if it is read."""
    if hidden and not reading.hidden_sheets:
        return "hidden"
    chosen = not reading.sheets or any(fnmatchcase(name, one) for one in reading.sheets)
    return None if chosen else "not_chosen"


def row_scorers(package: Package, ctx: Context) -> list[RowScorer]:
    """Wrap the package's row detectors for the table finder."""

    def scorer(detector: RowDetector) -> RowScorer:
        function = detector.function

        def score(row: SheetRow) -> Any:
            return function({"row": row, "ctx": ctx})

        return RowScorer(detector.row_type, str(function.rule), score)

    return [scorer(detector) for detector in package.row_detectors]


def _hidden_columns(sheet: Sheet, reading: ReadingSettings) -> frozenset[int]:
    return frozenset() if reading.hidden_columns else frozenset(sheet.hidden_columns)


def _without(table: TableRegion, hidden: frozenset[int]) -> TableRegion:
    """Leave hidden columns out of a table."""
    kept = [(number, text) for number, text in table.headers() if number not in hidden]
    if len(kept) == len(table.columns) or not kept:
        return table
    numbers, texts = zip(*kept, strict=True)
    return replace(table, columns=numbers, header=texts)


def _sheet_json(sheet: Sheet, found: SheetTables, tables: list[WorkbookTable]) -> dict[str, Any]:
    first = tables[0].region.header_row if tables else None
    return {
        "sheet": sheet.name,
        "hidden": bool(sheet.hidden),
        "rows": sheet.height,
        "columns": sheet.width,
        "header_row": first,
        "tables": [_table_json(one) for one in tables],
        "unused": _spans_json(found.unused),
        "notes": [str(note) for note in sheet.notes],
    }


def _table_json(found: WorkbookTable) -> dict[str, Any]:
    table = found.region
    return {
        "table": found.number,
        "range": str(table.range),
        "header_row": table.header_row,
        "header_rows": list(table.header_rows),
        "data_range": str(table.data_range) if table.data_range else None,
        "data_rows": table.data_rows.count,
        "shape": str(table.shape),
        "skipped": _spans_json(table.skipped),
        "confidence": round(table.confidence, 4),
        "contributors": [{"rule": one.rule, "delta": round(one.delta, 4)} for one in table.why],
    }


def _spans_json(spans: Any) -> dict[str, list[str]]:
    return {str(kind): rows_json(rows) for kind, rows in sorted(spans.items()) if rows}


def rows_json(rows: RowSpans, at_most: int = 100) -> list[str]:
    """Return rows as in spreadsheet programs: `7`, `9:12`."""
    shown = [str(first) if first == last else f"{first}:{last}" for first, last in rows]
    return shown if len(shown) <= at_most else [*shown[:at_most], "..."]
