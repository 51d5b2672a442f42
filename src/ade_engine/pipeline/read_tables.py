"""The first pass: read the sheets that the settings ask for, and find their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ade_engine.package.config_package import Package
from ade_engine.package.package_settings import ReadingSettings
from ade_engine.package.views import Context
from ade_engine.record.run_events import EventName, Recorder
from ade_engine.sheets.workbook import Sheet
from ade_engine.tables.regions import SheetTables, TableRegion
from ade_engine.tables.row_detectors import RowScorer, SheetRow
from ade_engine.tables.spans import RowSpans

Finder = Callable[[Sheet, list[RowScorer] | None], SheetTables]


@dataclass(frozen=True)
class WorkbookTable:
    """A table and the sheet that it is in; tables are numbered through the whole file."""

    number: int
    sheet: Sheet
    region: TableRegion


def read_tables(
    sheets: list[Sheet], package: Package, ctx: Context, record: Recorder, finder: Finder
) -> Iterator[WorkbookTable]:
    """Read sheet after sheet and give its tables, noting where they are and why."""
    rules = row_rules(package, ctx)
    number = 0
    for sheet in sheets:
        reason = why_skipped(sheet.name, sheet.hidden, package.settings.reading)
        if reason is not None:
            record.emit(EventName.SHEET_SKIPPED, sheet=sheet.name, reason=reason)
            continue
        sheet.scan()
        structure = finder(sheet, rules or None)
        hidden = _hidden_columns(sheet, package.settings.reading)
        tables = [_without(table, hidden) for table in structure.tables]
        numbered = [
            WorkbookTable(place, sheet, table) for place, table in enumerate(tables, number + 1)
        ]
        number += len(tables)
        record.emit(EventName.SHEET_READ, **_sheet_json(sheet, structure, numbered))
        yield from numbered


def why_skipped(name: str, hidden: bool, reading: ReadingSettings) -> str | None:
    """Say why a sheet is not read, if it is not."""
    if hidden and not reading.hidden_sheets:
        return "hidden"
    chosen = not reading.sheets or any(fnmatchcase(name, one) for one in reading.sheets)
    return None if chosen else "not_chosen"


def row_rules(package: Package, ctx: Context) -> list[RowScorer]:
    """Wrap the package's row detectors for the finder of tables."""

    def rule(detector: Any) -> RowScorer:
        function = detector.function

        def score(row: SheetRow) -> Any:
            return function({"row": row, "ctx": ctx})

        return RowScorer(detector.row_type, function.rule, score)

    return [rule(detector) for detector in package.row_detectors]


def _hidden_columns(sheet: Sheet, reading: ReadingSettings) -> frozenset[int]:
    return frozenset() if reading.hidden_columns else frozenset(sheet.hidden_columns)


def _without(table: TableRegion, hidden: frozenset[int]) -> TableRegion:
    """Leave hidden columns out of a table."""
    kept = [(number, text) for number, text in table.headers() if number not in hidden]
    if len(kept) == len(table.columns) or not kept:
        return table
    numbers, texts = zip(*kept, strict=True)
    return replace(table, columns=numbers, header=texts)


def _sheet_json(
    sheet: Sheet, structure: SheetTables, tables: list[WorkbookTable]
) -> dict[str, Any]:
    first = tables[0].region.header_row if tables else None
    return {
        "sheet": sheet.name,
        "hidden": bool(sheet.hidden),
        "rows": sheet.height,
        "columns": sheet.width,
        "header_row": first,
        "tables": [_table_json(one) for one in tables],
        "unused": _spans_json(structure.unused),
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
    """Return rows as people write them: `7`, `9:12`."""
    shown = [str(first) if first == last else f"{first}:{last}" for first, last in rows]
    return shown if len(shown) <= at_most else [*shown[:at_most], "..."]
