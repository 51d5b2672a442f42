"""Lay out the sheets and columns of the output, and write it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ade_engine.package.config_package import Package
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.pipeline.process_table import OutputColumns
from ade_engine.sheets.cells import CellArray
from ade_engine.writing.workbook_writer import WorkbookWriter


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


class OutputWorkbook:
    """Write tables to sheets as laid out; several tables may share a sheet."""

    def __init__(self, path: Path, package: Package, layouts: Sequence[TableLayout]) -> None:
        self._labels = {rules.name: rules.label for rules in package.fields}
        self._writer = WorkbookWriter(path)
        self._open: str | None = None
        self._sheets: list[tuple[str, int]] = []
        if not layouts:  # a workbook without a sheet cannot be opened
            fields = tuple(self._labels)
            self.open_table(TableLayout(package.settings.output.sheet, OutputColumns(fields), {}))

    def __enter__(self) -> OutputWorkbook:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._writer.close()
        else:
            self._writer.abandon()

    def open_table(self, layout: TableLayout) -> str:
        """Open the sheet of a table, and return its name."""
        if self._open != layout.sheet:
            header = [self._labels[name] for name in layout.columns.fields]
            name = self._writer.add_sheet(layout.sheet, [*header, *layout.columns.kept])
            self._open = layout.sheet
            self._sheets.append((name, 0))
        return self._sheets[-1][0]

    def write(self, columns: Sequence[CellArray]) -> None:
        """Write rows of the table that was opened last."""
        self._writer.write(columns)
        name, rows = self._sheets[-1]
        self._sheets[-1] = (name, rows + len(columns[0]))

    def as_json(self) -> dict[str, Any]:
        """Return what was written; a sheet that was full continues in the ones after it."""
        names = self._writer.names
        firsts = [names.index(name) for name, _ in self._sheets]
        return {
            "sheets": [
                {"sheet": name, "rows": rows, "goes_on_in": names[first + 1 : end]}
                for (name, rows), first, end in zip(
                    self._sheets, firsts, [*firsts[1:], len(names)], strict=True
                )
            ],
            "texts_cut": self._writer.cut_texts,
        }
