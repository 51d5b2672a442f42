"""Lay out the sheets and columns of the output, and write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ade_engine.package.config_package import FieldRules, Package
from ade_engine.pipeline.chunk import Chunk
from ade_engine.pipeline.issue_log import IssueLine
from ade_engine.pipeline.issues_sheet import write_issues_file
from ade_engine.pipeline.left_out import LeftOut
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.pipeline.output_workbook import InputFile, OutputWorkbook
from ade_engine.pipeline.process_table import OutputColumns
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.writing.sheet_writer import SheetColumn
from ade_engine.writing.typed_columns import FORMULA_LIKE, TypedColumn
from ade_engine.writing.typed_files import TypedFiles

WORKBOOK_FILE = "normalized.xlsx"
ISSUES_FILE = "issues.csv"
FILES_NAME = "normalized"
SOURCE_NAMES = ("source_sheet", "source_row")
SOURCE_HEADERS = ("Source sheet", "Source row")
HIDDEN_ROWS = "Left out: hidden rows. The setting hidden_rows reads them."


@dataclass(frozen=True)
class TableLayout:
    """Where one table is written: its sheet, the sheet's columns, and its kept columns."""

    sheet: str
    columns: OutputColumns
    kept_columns: dict[str, int]


def lay_out_tables(tables: Sequence[PlannedTable], package: Package) -> list[TableLayout]:
    """Lay out all tables before the first row is written."""
    settings = package.settings.output
    fields = tuple(rules.name for rules in package.fields)
    labels = [rules.label for rules in package.fields]
    kept = [_kept_columns(table, labels) if settings.unmapped == "keep" else {} for table in tables]
    if settings.tables == "stack":
        every = OutputColumns(
            fields, tuple(dict.fromkeys(header for one in kept for header in one))
        )
        return [TableLayout(settings.sheet, every, one) for one in kept]
    names = unique_names(
        f"{settings.sheet} {table.mapped.number}" if len(tables) > 1 else settings.sheet
        for table in tables
    )
    return [
        TableLayout(name, OutputColumns(fields, tuple(one)), one)
        for name, one in zip(names, kept, strict=True)
    ]


def _kept_columns(table: PlannedTable, labels: list[str]) -> dict[str, int]:
    """Return the unmapped columns of a table by their headers, made unique."""
    left = [one for one in table.mapped.mapping.columns if one.target is None]
    names = [one.header.strip() or f"Column {one.letter}" for one in left]
    unique = unique_names([*labels, *names])[len(labels) :]
    return {name: one.number for name, one in zip(unique, left, strict=True)}


def unique_names(names: Iterable[str]) -> list[str]:
    """Make names unique by appending numbers."""
    taken: set[str] = set()
    unique = []
    for name in names:
        chosen, number = name, 1
        while chosen.casefold() in taken:
            number += 1
            chosen = f"{name} ({number})"
        taken.add(chosen.casefold())
        unique.append(chosen)
    return unique


@dataclass(frozen=True)
class OutputOptions:
    """What one run decides about its output.

    `formats` replaces the setting `outputs` of the package; files besides the workbook go to
    `files_folder`, which is the workbook's folder unless it is given.
    """

    formats: tuple[str, ...] = ()
    files_folder: Path | None = None


class Output:
    """Write tables as laid out, in the formats that the settings name."""

    def __init__(
        self,
        folder: Path,
        package: Package,
        layouts: Sequence[TableLayout],
        source: InputFile,
        options: OutputOptions,
    ) -> None:
        self._package = package
        self._settings = package.settings.output
        self._labels = {rules.name: rules.label for rules in package.fields}
        self._source = source
        self._folder = folder
        self._files_folder = options.files_folder or folder
        self._formats = options.formats or self._settings.outputs
        self._has_workbook = "xlsx" in self._formats
        path = folder / WORKBOOK_FILE if self._has_workbook else None
        self._workbook = OutputWorkbook(path, package, source)
        self._typed: list[TypedFiles] = []
        self._files: list[dict[str, Any]] = []
        self._open: str | None = None
        self._sheet = ""
        self._table: PlannedTable | None = None
        self._table_rows = 0
        if not layouts:  # a workbook without a sheet cannot be opened
            fields = tuple(self._labels)
            self._open_sheet(TableLayout(self._settings.sheet, OutputColumns(fields), {}))

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._workbook.close()
            self._close_files()
        else:
            self._workbook.abandon()
            for files in self._typed:
                files.abandon()

    def _close_files(self) -> None:
        declared = {rules.name: rules.field for rules in self._package.fields}
        for files in self._typed:
            self._files += files.close(declared)
        if self._typed:
            write_issues_file(self._files_folder / ISSUES_FILE, self._workbook.issues)
            self._files.append({"path": ISSUES_FILE, "format": "issues"})

    def open_table(self, layout: TableLayout, table: PlannedTable) -> str:
        """Open the sheet of a table, and return its name."""
        if self._open != layout.sheet:
            self._open_sheet(layout)
        self._table, self._table_rows = table, 0
        self._workbook.open_table(table, layout.columns.fields)
        return self._sheet

    def _open_sheet(self, layout: TableLayout) -> None:
        columns = self._columns(layout.columns)
        self._sheet = self._workbook.open_sheet(layout.sheet, columns)
        self._open = layout.sheet
        if set(self._formats) - {"xlsx"}:
            number = len(self._typed) + 1
            self._typed.append(
                TypedFiles(
                    self._files_folder,
                    FILES_NAME if number == 1 else f"{FILES_NAME}-{number}",
                    self._formats,
                    self._typed_columns(layout.columns, columns),
                    quote_formulas=self._settings.csv_formulas == "quote",
                    scratch=self._folder,
                )
            )

    def _typed_columns(
        self, columns: OutputColumns, described: Sequence[SheetColumn]
    ) -> list[TypedColumn]:
        names = list(columns.fields)
        quotes = self._settings.csv_formulas == "quote"
        for header in columns.kept:  # the sender's: none may become a formula
            names.append(f"'{header}" if quotes and re.match(FORMULA_LIKE, header) else header)
        names += SOURCE_NAMES[: len(described) - len(names)]
        return [
            TypedColumn(name, column.header, column.type)
            for name, column in zip(unique_names(names), described, strict=True)
        ]

    def _columns(self, columns: OutputColumns) -> list[SheetColumn]:
        by_name = {rules.name: rules for rules in self._package.fields}
        described = [_sheet_column(by_name[name]) for name in columns.fields]
        described += [SheetColumn(header) for header in columns.kept]
        if self._settings.source:
            names = unique_names([*(one.header for one in described), *SOURCE_HEADERS])
            sheet, row = names[-2:]
            described += [SheetColumn(sheet, "text"), SheetColumn(row, "integer")]
        return described

    def mark(self, line: IssueLine, rows: IntArray | None) -> None:
        """Mark rows of the open table that have an issue."""
        self._workbook.mark(line, rows)

    def write(self, columns: Sequence[CellArray], chunk: Chunk) -> None:
        """Write the rows of a chunk of the open table."""
        if self._settings.source and self._table is not None:
            columns = [*columns, *_source_cells(self._table.mapped.sheet, chunk)]
        self._workbook.write(columns, chunk)
        if self._typed:
            self._typed[-1].write(columns)
        self._table_rows += len(chunk.rows)

    def close_table(self) -> None:
        """Finish a table: mark the issues that were found after its last row."""
        self._workbook.close_table()
        if self._table is None:
            return
        mapped = self._table.mapped
        hidden = mapped.region.data_rows.count - self._table_rows
        if hidden > 0:
            self.add_left_out([LeftOut("rows", "hidden", HIDDEN_ROWS, hidden, mapped.sheet)])

    def add_left_out(self, found: Iterable[LeftOut]) -> None:
        """List what is not in the output."""
        for one in found:
            self._workbook.add_left_out(one)

    def as_json(self) -> dict[str, Any]:
        """Return what was written."""
        path = WORKBOOK_FILE if self._has_workbook else None
        return {"path": path, **self._workbook.as_json(), "files": self._files}


def remove_outputs(*folders: Path) -> None:
    """Delete what a run writes, so that a run that fails leaves nothing of another one."""
    for folder in folders:
        for pattern in (f"{FILES_NAME}*.*", ISSUES_FILE):
            for path in folder.glob(pattern):
                path.unlink(missing_ok=True)


def _sheet_column(rules: FieldRules) -> SheetColumn:
    declared = rules.field
    shown = f"#,##0.00\\ [${declared.currency}]" if declared.currency else declared.format
    return SheetColumn(rules.label, declared.type, shown)


def _source_cells(sheet: str, chunk: Chunk) -> list[CellArray]:
    height = len(chunk.rows)
    names = CellArray.of([sheet or None])
    repeated = CellArray(
        names.kinds.repeat(height),
        names.numbers.repeat(height),
        names.text.new_from_index(0, height),
    )
    numbers = CellArray(
        np.full(height, CellKind.NUMBER, np.uint8),
        chunk.rows.astype(np.float64),
        CellArray.empty(height).text,
    )
    return [repeated, numbers]
