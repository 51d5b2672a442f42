"""Third step: transform, validate and write a table, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ade_engine.package.author_errors import Misuse
from ade_engine.package.column import Column
from ade_engine.package.config_package import Package
from ade_engine.package.conversion import to_number
from ade_engine.package.function_arguments import Context, Table
from ade_engine.pipeline.chunk import Chunk, chunks
from ade_engine.pipeline.issue_log import IssueLine, IssueLog
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.pipeline.mapped_table import Columns
from ade_engine.pipeline.sheet_checks import SheetChecks
from ade_engine.pipeline.source_checks import SourceChecks, check_headers, report_doubts
from ade_engine.pipeline.transform import Transform
from ade_engine.pipeline.validate import INVALID, Validate
from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.sheets.coordinates import column_letters


class Sink(Protocol):
    """Something that rows can be written to, and that marks their issues."""

    def mark(self, line: IssueLine, rows: IntArray | None) -> None:
        """Mark rows of the source that have an issue: of the next chunk, or earlier ones."""

    def write(self, columns: Sequence[CellArray], chunk: Chunk) -> None:
        """Write the rows of a chunk, as columns of equal height."""


@dataclass(frozen=True)
class OutputColumns:
    """The columns of an output sheet: fields first, then unmapped columns that are kept."""

    fields: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcessedTable:
    """The result of processing one table."""

    rows: int
    changed: dict[str, int]
    issue_log: IssueLog


class _View:
    """Hold the columns that `table[...]` currently returns."""

    def __init__(self, planned: PlannedTable) -> None:
        self._planned = planned
        self._columns: Columns = {}
        self.whole: Callable[[str], Column | None] | None = None

    def show(self, columns: Columns) -> None:
        self._columns = columns

    def column(self, name: str) -> Column:
        if self.whole is None:
            return self._planned.mapped.column(name, self._columns[name])
        column = self.whole(name)
        if column is None:
            raise Misuse(
                f"validate_table can use only fields whose names are string literals in it,"
                f" and {name} is none"
            )
        return column


def process_table(
    planned: PlannedTable,
    package: Package,
    ctx: Context,
    layout: OutputColumns,
    kept_columns: dict[str, int],
    sink: Sink,
    report_rows: Callable[[int], None],
) -> ProcessedTable:
    """Process one table; `report_rows` is called with the number of rows of each chunk."""
    mapped = planned.mapped
    rules = tuple(rules for rules in package.fields if rules.name in mapped.targets)
    totals = _StatedTotals(planned)
    view = _View(planned)
    table = author_table(planned, view.column, totals)
    arguments: dict[str, Any] = {"table": table, "ctx": ctx}
    issue_log = IssueLog(package.sources.texts | {INVALID}, sink.mark)
    transform = Transform(mapped, rules, arguments)
    validate = Validate(mapped, rules, arguments, issue_log, totals)
    report_doubts(mapped, rules, issue_log)
    check_headers(mapped, rules, issue_log, package.settings.mapping.margin)
    rows = 0
    region = mapped.region
    if region.data_rows:
        checks = SourceChecks(mapped, rules, issue_log, package.settings.reading.preference)
        sheet_checks = SheetChecks(mapped, rules, issue_log)
        blocks = planned.sheet.blocks(region.data_rows.first, region.data_rows.last)
        for chunk in chunks(region, blocks, mapped.notations.hidden_rows):
            after = transform(chunk, view.show)
            checks(chunk)
            sheet_checks(chunk)
            view.show(after)
            validate(after, chunk.rows)
            height = len(chunk.rows)
            sink.write(
                [
                    *(
                        after[name] if name in after else CellArray.empty(height)
                        for name in layout.fields
                    ),
                    *(chunk.cells(kept_columns.get(header, 0)) for header in layout.kept),
                ],
                chunk,
            )
            rows += height
            report_rows(height)
    view.whole = validate.whole_column
    validate.finish()
    return ProcessedTable(rows, transform.changed, issue_log)


def author_table(
    planned: PlannedTable,
    column: Callable[[str], Column] | None = None,
    stated: Callable[[str], float | None] | None = None,
) -> Table:
    """Make the `table` argument of the author's functions."""
    mapped = planned.mapped
    return Table(
        number=mapped.number,
        sheet=mapped.sheet,
        range=str(mapped.region.range),
        headers={column_letters(number): text for number, text in mapped.region.headers()},
        fields=tuple(mapped.targets),
        known=mapped.mapping.known,
        column=column,
        stated=stated,
    )


class _StatedTotals:
    """Look up the numbers in the last total row of a table."""

    def __init__(self, planned: PlannedTable) -> None:
        self._planned = planned

    def __call__(self, name: str) -> float | None:
        mapped = self._planned.mapped
        totals = mapped.region.skipped.get("total")
        if not totals:
            return None
        for block in self._planned.sheet.blocks(totals.last, totals.last):
            cut = block.rows(totals.last, totals.last)
            if cut.height:
                number = mapped.targets[name]
                decimal = mapped.notations.of(number).decimal
                cells = to_number(cut.column(number), decimal)
                if cells.kinds[0] == CellKind.NUMBER:
                    return float(cells.numbers[0])
        return None
