"""Find the tables of a sheet: sample its rows, label them, and assemble the labelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.coordinates import Range
from ade_engine.tables.assembly import DraftTables, TableDraft, assemble_tables, is_key_value
from ade_engine.tables.bands import side_by_side
from ade_engine.tables.forest import Weights, default_weights
from ade_engine.tables.grid import Grid
from ade_engine.tables.header_text import header_texts
from ade_engine.tables.labels import HEADER_END, RowScores, label_rows
from ade_engine.tables.regions import RowKind, SheetTables, TableRegion, TableShape
from ade_engine.tables.row_detectors import RowScorer, score_rows
from ade_engine.tables.sample import SheetCells, SheetSample, sample_sheet
from ade_engine.tables.spans import RowSpans

RULE_SCORE_MIN = 0.5  # least score of a row detector for a row that is not in the sample


def find_tables(
    sheet: SheetCells, rules: Sequence[RowScorer] | None = None, weights: Weights | None = None
) -> SheetTables:
    """Find the tables of a sheet with the default model and a package's row detectors."""
    seen = sample_sheet(sheet)
    if not seen.grid.width:
        return SheetTables()
    return _TableFinder(sheet, seen, rules or (), weights or default_weights()).find()


class _TableFinder:
    def __init__(
        self, sheet: SheetCells, seen: SheetSample, rules: Sequence[RowScorer], weights: Weights
    ) -> None:
        self._sheet = sheet
        self._seen = seen
        self._weights = weights
        unseen = seen.holds_something.copy()
        unseen[seen.grid.rows - 1] = False
        self._unseen: IntArray = np.flatnonzero(unseen) + 1
        self._scores: RowScores = {}
        if rules:
            width = max(chain((0,), *(columns for _, _, columns in seen.columns_used)))
            self._scores = score_rows(
                sheet, width, rules, seen.grid.rows.tolist(), self._unseen.tolist()
            )

    def find(self) -> SheetTables:
        """Collect the tables of all bands of columns, in reading order."""
        tables: list[TableRegion] = []
        unused: dict[str, RowSpans] = {}
        for grid in side_by_side(self._seen.grid, self._first_table):
            drafts = self._drafts(grid)
            for draft in drafts.tables:
                tables += self._tables(grid, draft)
            for kind, places in drafts.unused.items():
                unused[kind] = RowSpans.of(grid.rows[places])
        tables.sort(key=lambda table: (table.range.first_row, table.range.first_column))
        return SheetTables(tuple(tables), unused)

    def _drafts(self, grid: Grid, *, with_unseen: bool = True) -> DraftTables:
        labelled = label_rows(grid, self._weights, self._scores)
        drafts = assemble_tables(labelled, RowSpans.of(self._unseen if with_unseen else []))
        for draft in drafts.tables:
            if draft.shape is TableShape.HEADERLESS:
                likely = float(labelled.shares[:, HEADER_END].max(initial=0))
                draft.confidence = round(1 - likely, 3)
                if is_key_value(grid, draft.body):
                    draft.shape = TableShape.KEY_VALUE
        return drafts

    def _first_table(self, grid: Grid) -> TableDraft | None:
        return next(iter(self._drafts(grid, with_unseen=False).tables), None)

    def _tables(self, grid: Grid, draft: TableDraft) -> Iterator[TableRegion]:
        """Make a region from a draft, or several if its tables are side by side."""
        places = draft.places
        if not places:
            return
        part = grid.band(places[0], places[-1], range(grid.width))
        bands = [] if draft.stretches else side_by_side(part, self._first_table)
        if len(bands) < 2:
            yield self._table(grid, draft)
            return
        for number, band in enumerate(bands):
            tables = [
                self._table(band, one)
                for one in self._drafts(band, with_unseen=False).tables
                if one.places
            ]
            if number == 0 and tables:
                tables[0] = _with_surroundings(tables[0], grid, draft)
            yield from tables

    def _table(self, grid: Grid, draft: TableDraft) -> TableRegion:
        header_rows = tuple(grid.rows[draft.header].tolist())
        ruled = self._ruled(draft)
        skipped = {kind: grid.rows[places] for kind, places in draft.skipped.items()}
        for kind, rows in ruled.items():
            skipped[kind] = np.concatenate((skipped.get(kind, np.zeros(0, np.int64)), rows))
        data = _rows(grid.rows[draft.body], draft.stretches)
        data = data[~np.isin(data, np.concatenate(list(ruled.values())))] if ruled else data
        columns = self._columns(grid, draft)
        inside = np.concatenate((grid.rows[draft.places], data))
        known = np.concatenate((inside, *skipped.values()))
        spans = {kind: RowSpans.of(rows) for kind, rows in skipped.items() if len(rows)}
        blank = RowSpans.of(known).gaps()
        if blank:
            spans[RowKind.BLANK] = blank
        return TableRegion(
            range=Range(int(inside.min()), columns[0], int(inside.max()), columns[-1]),
            columns=columns,
            header_rows=header_rows,
            header=header_texts(self._sheet, header_rows, columns),
            data_rows=RowSpans.of(data),
            skipped=spans,
            shape=draft.shape,
            confidence=draft.confidence,
            why=draft.why,
        )

    def _ruled(self, draft: TableDraft) -> dict[str, IntArray]:
        """Return the rows outside the sample that are not data after all, by row type."""
        found: dict[str, list[int]] = {}
        if not draft.stretches:
            return {}
        if self._scores:
            for row in _rows(np.zeros(0, np.int64), draft.stretches).tolist():
                kind = _ruled_kind(self._scores.get(row, {}))
                if kind is not None:
                    found.setdefault(kind, []).append(row)
        elif len(self._seen.totals):
            inside = RowSpans(draft.stretches)
            totals = [row for row in self._seen.totals.tolist() if row in inside]
            if totals:
                found[RowKind.TOTAL] = totals
        return {kind: np.array(rows, dtype=np.int64) for kind, rows in found.items()}

    def _columns(self, grid: Grid, draft: TableDraft) -> tuple[int, ...]:
        places = [*draft.header, *draft.body] or draft.places
        used = np.flatnonzero(grid.filled[places].any(axis=0))
        columns = {grid.columns[place] for place in used.tolist()}
        whole = grid.width == self._seen.grid.width
        for first, last in draft.stretches if whole else ():
            columns |= self._seen.columns_within(first, last)
        if whole and grid.columns[-1] in columns:
            rows = grid.rows[places]
            columns |= self._seen.columns_beyond(int(rows.min()), int(rows.max()))
        return tuple(sorted(columns))


def _rows(rows: IntArray, stretches: Sequence[tuple[int, int]]) -> IntArray:
    return np.concatenate((rows, *(np.arange(first, last + 1) for first, last in stretches)))


def _ruled_kind(scores_of_row: Mapping[str, Mapping[str, float]]) -> str | None:
    """Return the row type that detectors score high enough for a row that looks like data."""
    totals = {kind: sum(scores.values()) for kind, scores in scores_of_row.items()}
    data = totals.pop(RowKind.DATA, 0.0)
    if not totals:
        return None
    best = max(sorted(totals), key=lambda kind: totals[kind])
    return best if totals[best] - data >= RULE_SCORE_MIN else None


def _with_surroundings(table: TableRegion, grid: Grid, draft: TableDraft) -> TableRegion:
    """Add the rows above and below several tables side by side to the first of them."""
    around = (RowKind.PREAMBLE, RowKind.FOOTER, RowKind.NOTE)
    outside: dict[str, RowSpans] = {
        kind: RowSpans.of(grid.rows[draft.skipped[kind]])
        for kind in around
        if kind in draft.skipped and kind not in table.skipped
    }
    return replace(table, skipped={**table.skipped, **outside})
