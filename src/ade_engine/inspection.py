"""Report the sheets and tables that the engine finds in a file without a config package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ade_engine.errors import EngineError
from ade_engine.pipeline.read_tables import SHEETS_NAMED_MAX, rows_by_kind
from ade_engine.sheets.metadata import UnreadSheet
from ade_engine.sheets.read_limits import ReadOptions
from ade_engine.sheets.workbook import Sheet, open_workbook
from ade_engine.tables.finder import find_tables
from ade_engine.tables.header_text import text_of
from ade_engine.tables.regions import RowKind, SheetTables, TableRegion
from ade_engine.tables.row_detectors import SheetRows
from ade_engine.tables.spans import RowSpans

DRAWN_ROWS_MAX = 60
DRAWN_COLUMNS_MAX = 30
DATA_ROWS_DRAWN = 3  # at the beginning of each run of data rows
OTHER_ROWS_DRAWN = 8  # of any other run of one kind


@dataclass(frozen=True)
class PictureLine:
    """One line of a picture: a row, or a number of rows of one kind that are left out."""

    row: int
    kind: str
    cells: tuple[str, ...] = ()
    rows_left_out: int = 0


@dataclass(frozen=True)
class InspectedSheet:
    """A sheet, its tables, and its picture (empty unless requested)."""

    name: str
    hidden: bool
    rows: int
    columns: int
    notes: tuple[str, ...]
    structure: SheetTables
    picture: tuple[PictureLine, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "sheet": self.name,
            "hidden": self.hidden,
            "rows": self.rows,
            "columns": self.columns,
            "notes": list(self.notes),
            "tables": [table_json(table) for table in self.structure.tables],
            "unused": rows_by_kind(self.structure.unused),
        }


@dataclass
class InspectedFile:
    """A file: the sheets that could be read, and the error, if any."""

    file: str
    format: str | None = None
    sheets: list[InspectedSheet] = field(default_factory=list)
    unread: tuple[UnreadSheet, ...] = ()
    error: EngineError | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "format": self.format,
            "sheets": [sheet.as_json() for sheet in self.sheets],
            "unread_sheets": {
                "count": len(self.unread),
                "sheets": [asdict(sheet) for sheet in self.unread[:SHEETS_NAMED_MAX]],
            },
            "error": None if self.error is None else error_json(self.error),
        }


def inspect_file(
    path: str | Path, options: ReadOptions | None = None, *, draw: bool = False
) -> InspectedFile:
    """Inspect every sheet of a file; an error is returned, never raised."""
    seen = InspectedFile(str(path))
    try:
        with open_workbook(path, options) as book:
            seen.format = book.format
            seen.unread = book.unread
            for sheet in book.sheets:
                seen.sheets.append(inspect_sheet(sheet, draw=draw))
                sheet.close()
    except EngineError as error:
        seen.error = error
    except Exception as error:
        # The message may hold a value of the file; the name of the type cannot.
        seen.error = EngineError(f"the engine failed with {type(error).__name__}")
    return seen


def inspect_sheet(sheet: Sheet, *, draw: bool = False) -> InspectedSheet:
    """Find the tables of a sheet, and draw it if requested."""
    sheet.scan()
    structure = find_tables(sheet)
    picture = tuple(_picture(sheet, structure)) if draw else ()
    return InspectedSheet(
        name=sheet.name,
        hidden=sheet.hidden,
        rows=sheet.height,
        columns=sheet.width,
        notes=tuple(str(note) for note in sheet.notes),
        structure=structure,
        picture=picture,
    )


def table_json(table: TableRegion) -> dict[str, Any]:
    """Return a table as JSON."""
    return {
        "range": str(table.range),
        "header_rows": list(table.header_rows),
        "header": list(table.recorded_header),
        "header_masked": not table.header_is_certain,
        "data_range": None if table.data_range is None else str(table.data_range),
        "data_rows": table.data_rows.count,
        "shape": table.shape.value,
        "skipped": rows_by_kind(table.skipped),
        "skipped_reasons": rows_by_kind(table.reasons),
        "confidence": table.confidence,
        "needs_review": table.needs_review,
        "doubts": [doubt.value for doubt in table.doubts],
        "why": [one.as_json() for one in table.why],
    }


def error_json(error: EngineError) -> dict[str, str]:
    """Return an error as JSON."""
    return {"code": error.code, "message": error.message, "advice": error.advice}


def rows_as_text(spans: RowSpans) -> list[str]:
    """Return rows as in spreadsheet programs: `7` or `9:12`."""
    return [f"{first}" if first == last else f"{first}:{last}" for first, last in spans]


def _picture(sheet: Sheet, structure: SheetTables) -> Iterator[PictureLine]:
    """Draw the first rows of each run of one kind, and count the rest."""
    rows = SheetRows(sheet, min(sheet.width, DRAWN_COLUMNS_MAX))
    drawn = 0
    for first, last, kind in _runs(structure, sheet.height):
        shown = DATA_ROWS_DRAWN if kind == RowKind.DATA else OTHER_ROWS_DRAWN
        shown = 0 if kind == RowKind.BLANK else shown
        if kind not in (RowKind.BLANK, RowKind.DATA) and last - first < 2 * OTHER_ROWS_DRAWN:
            shown = last - first + 1
        for number in range(first, min(first + shown, last + 1)):
            row = rows.row(number)
            cells = tuple(map(text_of, row.values)) if row is not None else ()
            yield PictureLine(number, kind, cells)
            drawn += 1
        left = last - first + 1 - shown
        if left > 0:
            yield PictureLine(first + shown, kind, rows_left_out=left)
            drawn += 1
        if drawn >= DRAWN_ROWS_MAX:
            if last < sheet.height:
                yield PictureLine(last + 1, "not drawn", rows_left_out=sheet.height - last)
            return


def _runs(structure: SheetTables, height: int) -> Iterator[tuple[int, int, str]]:
    """Yield runs of rows of one kind from top to bottom; of tables side by side, the first."""
    found: list[tuple[int, int, str]] = []
    for table in structure.tables:
        found += _kind_runs(RowKind.HEADER, RowSpans.of(table.header_rows))
        found += _kind_runs(RowKind.DATA, table.data_rows)
        for kind, spans in table.skipped.items():
            found += _kind_runs(kind, spans)
    for kind, spans in structure.unused.items():
        found += _kind_runs(kind, spans)
    found.sort(key=lambda run: (run[0], run[2] == RowKind.BLANK))
    next_row = 1
    for first, last, kind in found:
        if first > next_row:
            yield next_row, first - 1, RowKind.BLANK
        if last >= next_row:
            yield max(first, next_row), last, kind
            next_row = last + 1
    if next_row <= height:
        yield next_row, height, RowKind.BLANK


def _kind_runs(kind: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int, str]]:
    return [(first, last, kind) for first, last in spans]
