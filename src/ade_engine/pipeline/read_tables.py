"""First step: read the sheets that the settings select, and find their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ade_engine.package.author_scores import author_scores
from ade_engine.package.config_package import Package, RowDetector
from ade_engine.package.function_arguments import Context
from ade_engine.package.package_settings import ReadingSettings
from ade_engine.record.run_events import EventName, Recorder
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.metadata import UnreadSheet
from ade_engine.sheets.workbook import Sheet
from ade_engine.tables.finder import find_tables
from ade_engine.tables.regions import RowKind, SheetTables, TableRegion
from ade_engine.tables.row_detectors import RowScorer, SheetRow
from ade_engine.tables.spans import RowSpans

RANGES_MAX = 100  # of rows of one kind; further ranges are only counted
SHEETS_NAMED_MAX = 100


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
    reading = package.settings.reading
    number = 0
    for sheet in sheets:
        reason = why_skipped(sheet.name, sheet.hidden, reading)
        if reason is not None:
            record.emit(EventName.SHEET_SKIPPED, sheet=sheet.name, reason=reason, count=1)
            continue
        sheet.scan()
        found = find_tables(sheet, scorers)
        hidden = _hidden_columns(sheet, reading)
        tables = [_without(table, hidden) for table in found.tables]
        numbered = [
            WorkbookTable(index, sheet, table) for index, table in enumerate(tables, number + 1)
        ]
        number += len(tables)
        record.emit(EventName.SHEET_READ, **_sheet_json(sheet, found, numbered, reading))
        yield from numbered


def record_unread_sheets(unread: Sequence[UnreadSheet], record: Recorder) -> None:
    """Record the sheets that the reader left out; at most `SHEETS_NAMED_MAX` of them by name."""
    for sheet in unread[:SHEETS_NAMED_MAX]:
        record.emit(EventName.SHEET_SKIPPED, sheet=sheet.name, reason=sheet.reason, count=1)
    others = Counter(sheet.reason for sheet in unread[SHEETS_NAMED_MAX:])
    for reason, count in sorted(others.items()):
        record.emit(EventName.SHEET_SKIPPED, sheet=None, reason=reason, count=count)


def why_skipped(name: str, hidden: bool, reading: ReadingSettings) -> str | None:
    """Return why a sheet is skipped, or None if it is read."""
    if hidden and not reading.hidden_sheets:
        return "hidden"
    chosen = not reading.sheets or any(fnmatchcase(name, one) for one in reading.sheets)
    return None if chosen else "not_chosen"


def row_scorers(package: Package, ctx: Context) -> list[RowScorer]:
    """Wrap the package's row detectors for the table finder."""

    known = {*RowKind, *(detector.row_type for detector in package.row_detectors)}

    def scorer(detector: RowDetector) -> RowScorer:
        function = detector.function

        def score(row: SheetRow) -> dict[str, float]:
            result = function({"row": row, "ctx": ctx})
            return dict(author_scores(function, result, detector.row_type, known, "row types"))

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


def _sheet_json(
    sheet: Sheet, found: SheetTables, tables: list[WorkbookTable], reading: ReadingSettings
) -> dict[str, Any]:
    first = tables[0].region.header_row if tables else None
    return {
        "sheet": sheet.name,
        "hidden": bool(sheet.hidden),
        "rows": sheet.height,
        "columns": sheet.width,
        "header_row": first,
        "tables": [
            _table_json(one, region, _hidden_rows(one, reading))
            for one, region in zip(tables, found.tables, strict=True)
        ],
        "unused": rows_by_kind(found.unused),
        "notes": [str(note) for note in sheet.notes],
    }


def _hidden_rows(found: WorkbookTable, reading: ReadingSettings) -> RowSpans:
    """Return the data rows of a table that are left out because they are hidden."""
    hidden = found.sheet.hidden_rows
    if reading.hidden_rows or not len(hidden):
        return RowSpans()
    first, last = int(hidden[0]), int(hidden[-1])
    data = found.region.data_rows.mask(first, last - first + 1)
    return RowSpans.of(hidden[data[hidden - first]])


def _table_json(found: WorkbookTable, whole: TableRegion, hidden_rows: RowSpans) -> dict[str, Any]:
    table = found.region
    skipped = {**table.skipped, "hidden": hidden_rows}
    left_out = sorted(set(whole.columns) - set(table.columns))
    return {
        "table": found.number,
        "range": str(table.range),
        "header_row": table.header_row,
        "header_rows": list(table.header_rows),
        "data_range": str(table.data_range) if table.data_range else None,
        "data_rows": table.data_rows.count,
        "shape": str(table.shape),
        "skipped": rows_by_kind(skipped),
        "skipped_reasons": rows_by_kind(table.reasons),
        "hidden_columns": [column_letters(number) for number in left_out],
        "confidence": round(table.confidence, 4),
        "needs_review": table.needs_review,
        "doubts": [doubt.value for doubt in table.doubts],
        "contributors": [{"rule": one.rule, "delta": round(one.delta, 4)} for one in table.why],
    }


def rows_by_kind(spans: Mapping[str, RowSpans]) -> dict[str, dict[str, Any]]:
    """Return how many rows there are of each kind, and where: `7`, `9:12`."""
    return {str(kind): _rows_json(rows) for kind, rows in sorted(spans.items()) if rows}


def _rows_json(rows: RowSpans) -> dict[str, Any]:
    runs = rows.runs
    shown = [str(first) if first == last else f"{first}:{last}" for first, last in runs]
    return {
        "count": rows.count,
        "ranges": shown[:RANGES_MAX],
        "ranges_omitted": max(len(shown) - RANGES_MAX, 0),
    }
