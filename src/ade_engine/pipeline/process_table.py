"""The last passes, in one stream: transform, validate and write chunk after chunk of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ade_engine.package.author_errors import Misuse
from ade_engine.package.column import Column
from ade_engine.package.config_package import Package
from ade_engine.package.conversion import to_number
from ade_engine.package.views import Context, Table
from ade_engine.pipeline.chunk import Columns, chunks
from ade_engine.pipeline.issue_log import IssueLog
from ade_engine.pipeline.map_tables import PlannedTable
from ade_engine.pipeline.transform import Transform
from ade_engine.pipeline.validate import INVALID, Validate
from ade_engine.sheets.cells import CellArray, CellKind
from ade_engine.sheets.coordinates import column_letters


class Sink(Protocol):
    """Take columns of equal height, one block after the other."""

    def write(self, columns: Sequence[CellArray]) -> None:
        """Write some rows."""


@dataclass(frozen=True)
class OutputColumns:
    """What the columns of the output are: fields first, then unmapped columns that are kept."""

    fields: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcessedTable:
    """What came of one table."""

    rows: int
    changed: dict[str, int]
    issue_log: IssueLog


class _View:
    """Hold what `table[...]` shows at the moment."""

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
            raise Misuse("validate_table sees the fields whose names are written out in it")
        return column


def process_table(
    planned: PlannedTable,
    package: Package,
    ctx: Context,
    layout: OutputColumns,
    kept_columns: dict[str, int],
    sink: Sink,
    told: Callable[[int], None],
) -> ProcessedTable:
    """Stream one table; `told` hears how many rows were done."""
    mapped = planned.mapped
    rules = tuple(rules for rules in package.fields if rules.name in mapped.targets)
    totals = _StatedTotals(planned)
    view = _View(planned)
    table = author_table(planned, view.column, totals)
    given: dict[str, Any] = {"table": table, "ctx": ctx}
    issue_log = IssueLog(package.sources.texts | {INVALID})
    transform = Transform(mapped, rules, given)
    validate = Validate(mapped, rules, given, issue_log, totals)
    rows = 0
    region = mapped.region
    if region.data_rows:
        reading = package.settings.reading
        hidden = None if reading.hidden_rows else planned.sheet.hidden_rows
        blocks = planned.sheet.blocks(region.data_rows.first, region.data_rows.last)
        for chunk in chunks(region, blocks, hidden):
            after = transform(chunk, view.show)
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
                ]
            )
            rows += height
            told(height)
    view.whole = validate.whole_column
    validate.finish()
    return ProcessedTable(rows, transform.changed, issue_log)


def author_table(
    planned: PlannedTable,
    column: Callable[[str], Column] | None = None,
    stated: Callable[[str], float | None] | None = None,
) -> Table:
    """Make the view of a table that the author's functions get."""
    mapped = planned.mapped
    return Table(
        number=mapped.number,
        sheet=mapped.sheet,
        range=str(mapped.region.range),
        headers={column_letters(number): text for number, text in mapped.region.headers()},
        fields=tuple(mapped.targets),
        column=column,
        stated=stated,
    )


class _StatedTotals:
    """Look up what the last total row of a table says."""

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
                cells = to_number(cut.column(mapped.targets[name]), mapped.reading.decimal)
                if cells.kinds[0] == CellKind.NUMBER:
                    return float(cells.numbers[0])
        return None
