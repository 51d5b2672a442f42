"""Second step: map the columns of each table, from its headers and a sample of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ade_engine.mapping.column_mapping import Candidate, ColumnMapping, MappedColumn, map_columns
from ade_engine.mapping.scores import RawColumn
from ade_engine.package.column import Column
from ade_engine.package.config_package import Package
from ade_engine.package.function_arguments import Context, Table, TableMapping
from ade_engine.package.header_parts import header_parts
from ade_engine.package.notation import NotationOfCells, Preference
from ade_engine.pipeline.chunk import chunks
from ade_engine.pipeline.mapped_table import MappedTable
from ade_engine.pipeline.read_tables import WorkbookTable
from ade_engine.pipeline.table_notation import TableNotations
from ade_engine.record.run_events import EventName, Recorder
from ade_engine.sheets.cells import CellArray
from ade_engine.sheets.coordinates import column_letters
from ade_engine.sheets.workbook import Sheet
from ade_engine.tables.header_text import header_texts


class Evaluation(StrEnum):
    """Whether a table, or a whole file, has the required fields."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class PlannedTable:
    """A mapped table, the sheet to read it from, and its evaluation."""

    mapped: MappedTable
    sheet: Sheet
    evaluation: Evaluation

    @property
    def is_written(self) -> bool:
        """Return whether the table's rows are written to the output."""
        return self.evaluation is not Evaluation.UNUSABLE


def map_table(
    found: WorkbookTable,
    package: Package,
    ctx: Context,
    record: Recorder,
    *,
    headers: bool,
    convention: Preference = Preference(),
) -> PlannedTable:
    """Map one table, call the hooks, and record the result for each column."""
    region = found.region
    view = Table(
        number=found.number,
        sheet=found.sheet.name,
        range=str(region.range),
        headers={column_letters(number): text for number, text in region.headers()},
        known=tuple(rules.name for rules in package.fields),
    )
    reading = package.settings.reading
    preference = reading.preference.otherwise(convention)
    sample = _sample(found, package.settings.mapping.sample_rows)
    mapping = map_columns(package, list(_raw_columns(found, sample, preference)), view, ctx)
    if "on_table_mapped" in package.hooks:
        mapping = _changed_by_hooks(mapping, package, view, ctx)
    hidden = None if reading.hidden_rows else found.sheet.hidden_rows
    notations = TableNotations(found.sheet, region, preference, hidden)
    mapped = MappedTable(found.number, found.sheet.name, region, mapping, notations)
    planned = PlannedTable(mapped, found.sheet, evaluate(mapping))
    unmapped = package.settings.output.unmapped
    record.emit(EventName.TABLE_MAPPED, **_mapped_json(planned, headers), unmapped=unmapped)
    return planned


def _changed_by_hooks(
    mapping: ColumnMapping, package: Package, view: Table, ctx: Context
) -> ColumnMapping:
    letters = {column_letters(one.number): one.number for one in mapping.columns}
    targets = {name: column_letters(number) for name, number in mapping.targets.items()}
    shown = TableMapping(targets, view.headers, mapping.known, mapping.required)
    view.fields = tuple(targets)
    package.call_hooks("on_table_mapped", {"table": view, "mapping": shown, "ctx": ctx})
    return mapping.changed(
        {name: letters[held] for name, held in shown.targets.items() if held in letters}
    )


def evaluate(mapping: ColumnMapping) -> Evaluation:
    """Evaluate a table by the required fields that it has."""
    found = set(mapping.required) - set(mapping.missing)
    if not mapping.targets or (mapping.required and not found):
        return Evaluation.UNUSABLE
    return Evaluation.PARTIAL if mapping.missing else Evaluation.COMPLETE


def evaluate_all(tables: list[PlannedTable]) -> Evaluation:
    """Evaluate a file by the tables that are written."""
    written = [table.evaluation for table in tables if table.is_written]
    if not written:
        return Evaluation.UNUSABLE
    return Evaluation.PARTIAL if Evaluation.PARTIAL in written else Evaluation.COMPLETE


def _raw_columns(
    found: WorkbookTable, sample: dict[int, CellArray], preference: Preference
) -> Iterator[RawColumn]:
    region = found.region
    last_levels = header_texts(found.sheet, region.header_rows[-1:], region.columns)
    for (number, header), last_level in zip(region.headers(), last_levels, strict=True):
        cells = sample.get(number, CellArray.empty(0))
        letter = column_letters(number)
        notation = NotationOfCells(cells, preference)
        column = Column(cells, header=header, letter=letter, notation=notation)
        yield RawColumn(number, header, column, last_level)


def _sample(found: WorkbookTable, rows_max: int) -> dict[int, CellArray]:
    """Return the first data rows of a table, by column."""
    region = found.region
    if not region.data_rows:
        return {}
    parts: dict[int, list[CellArray]] = {number: [] for number in region.columns}
    taken = 0
    for chunk in chunks(region, found.sheet.blocks(region.data_rows.first, region.data_rows.last)):
        wanted = min(len(chunk.rows), rows_max - taken)
        for number, cells in parts.items():
            cells.append(chunk.cells(number).slice(0, wanted))
        taken += wanted
        if taken >= rows_max:
            break
    return {number: CellArray.joined(cells) for number, cells in parts.items() if cells}


def _mapped_json(planned: PlannedTable, headers: bool) -> dict[str, Any]:
    mapped = planned.mapped
    return {
        "table": mapped.number,
        "sheet": mapped.sheet,
        "range": str(mapped.region.range),
        "header_row": mapped.region.header_row,
        "evaluation": planned.evaluation.value,
        "missing": list(mapped.mapping.missing),
        "columns": [
            _column_json(position, column, mapped, headers)
            for position, column in enumerate(mapped.mapping.columns, 1)
        ],
    }


def _column_json(
    position: int, column: MappedColumn, mapped: MappedTable, headers: bool
) -> dict[str, Any]:
    chosen = column.chosen
    rows = mapped.region.data_range
    reach = f"{column.letter}{rows.first_row}:{column.letter}{rows.last_row}" if rows else None
    raw = {"col": f"col_{position}", "column": column.letter}
    certain = mapped.region.header_is_certain  # a doubtful header may be a row of data
    if headers and certain:
        raw["header"] = column.header
    return {
        "raw": raw,
        "unit": header_parts(column.header).unit if certain else None,
        "range": reach,
        "target": column.target,
        "score": chosen.score if chosen else None,
        "contributors": _contributors(chosen) if chosen else [],
        "reason": column.reason.value if column.reason else None,
        "candidates": [
            {
                "field": one.field,
                "score": one.score,
                "contributors": _contributors(one),
            }
            for one in column.candidates
        ],
    }


def _contributors(candidate: Candidate) -> list[dict[str, Any]]:
    return [{"rule": rule, "delta": delta} for rule, delta in candidate.contributors]
