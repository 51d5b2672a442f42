"""Find the tables of a sheet: sample its rows, label them, and assemble the labelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ade_engine.sheets.arrays import IntArray
from ade_engine.sheets.coordinates import Range
from ade_engine.tables.assembly import DraftTables, TableDraft, assemble_tables
from ade_engine.tables.bands import Part, SheetParts
from ade_engine.tables.forest import Weights, default_weights
from ade_engine.tables.forms import is_key_value
from ade_engine.tables.grid import Grid
from ade_engine.tables.header_text import header_texts
from ade_engine.tables.labels import RowScores, label_rows
from ade_engine.tables.lists import list_table
from ade_engine.tables.regions import (
    Doubt,
    RowKind,
    SheetTables,
    SkipReason,
    TableRegion,
    TableShape,
)
from ade_engine.tables.row_detectors import RowScorer, score_rows
from ade_engine.tables.sample import SheetCells, SheetSample, holds_something, sample_sheet
from ade_engine.tables.spans import RowSpans

REVIEW_CONFIDENCE = 0.6  # below it a person should check the header, and its texts are not recorded
AFTER_DATA_ROWS_MIN = 3
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
        self._parts = SheetParts(self._first_table)
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
        """Collect the tables of all parts of the sheet, in reading order."""
        tables: list[TableRegion] = []
        unused: dict[str, list[IntArray]] = {}
        parts = list(self._parts.parts(self._seen.grid))
        for part in parts:
            drafts = self._drafts(part.grid, self._unseen_in(part, parts))
            for draft in drafts.tables:
                tables += self._tables(part, draft)
            for kind, places in drafts.unused.items():
                unused.setdefault(kind, []).append(part.grid.rows[places])
        tables.sort(key=lambda table: (table.range.first_row, table.range.first_column))
        spans = {kind: RowSpans.of(np.concatenate(rows)) for kind, rows in unused.items()}
        return SheetTables(tuple(tables), spans)

    def _unseen_in(self, part: Part, parts: Sequence[Part]) -> RowSpans:
        """Return the rows that are not in the grid and hold something in a part of the sheet."""
        if not len(self._unseen) or len(parts) == 1:
            return RowSpans.of(self._unseen)
        rows = part.grid.rows
        first = int(rows[0]) if any(one.grid.rows[0] < rows[0] for one in parts) else 1
        later = [int(one.grid.rows[0]) for one in parts if one.grid.rows[0] > rows[-1]]
        last = min(later, default=self._sheet.height + 1) - 1
        inside = self._unseen[(self._unseen >= first) & (self._unseen <= last)]
        if not len(inside) or part.grid.width == self._seen.grid.width:
            return RowSpans.of(inside)
        holding = [
            np.flatnonzero(used) + block.first_row
            for block in self._sheet.blocks(int(inside[0]), int(inside[-1]))
            for used in [holds_something(block, part.grid.columns)]
        ]
        return RowSpans.of(np.intersect1d(inside, np.concatenate(holding)) if holding else [])

    def _drafts(self, grid: Grid, unseen: RowSpans | None = None) -> DraftTables:
        unseen = unseen or RowSpans()
        if grid.width == 1 and not self._scores:
            found = list_table(grid, unseen)
            if found is not None:
                return found
        labelled = label_rows(grid, self._weights, self._scores)
        drafts = assemble_tables(labelled, unseen)
        for draft in drafts.tables:
            if draft.shape is TableShape.HEADERLESS:
                likely = labelled.header.presence if labelled.header is not None else 0.0
                draft.confidence = round(1 - likely, 3)
                if is_key_value(grid, draft.body):
                    draft.shape = TableShape.KEY_VALUE
        return drafts

    def _first_table(self, grid: Grid) -> TableDraft | None:
        return next(iter(self._drafts(grid).tables), None)

    def _tables(self, part: Part, draft: TableDraft) -> Iterator[TableRegion]:
        """Make a region from a draft, or several if its tables are side by side."""
        places, grid = draft.places, part.grid
        if not places:
            return
        rows = grid.band(places[0], places[-1], range(grid.width))
        bands = [] if draft.stretches else self._parts.beside(rows)
        if len(bands) < 2:
            yield self._table(part, draft)
            return
        for number, band in enumerate(bands):
            tables = [
                self._table(band, one) for one in self._drafts(band.grid).tables if one.places
            ]
            if number == 0 and tables:
                tables[0] = _with_surroundings(tables[0], grid, draft)
            yield from tables

    def _table(self, part: Part, draft: TableDraft) -> TableRegion:
        grid = part.grid
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
            reasons=self._reasons(grid, draft, ruled, blank),
            doubts=tuple(_doubts(part, draft)),
        )

    def _reasons(
        self, grid: Grid, draft: TableDraft, ruled: Mapping[str, IntArray], blank: RowSpans
    ) -> dict[str, RowSpans]:
        """Group the rows that are left out by the reason for it."""
        found: dict[str, list[int]] = {}
        for place, reason in draft.reasons.items():
            found.setdefault(reason, []).append(int(grid.rows[place]))
        by_rule = SkipReason.ROW_DETECTOR if self._scores else SkipReason.SAYS_TOTAL
        for rows in ruled.values():
            found.setdefault(by_rule, []).extend(rows.tolist())
        spans = {reason: RowSpans.of(rows) for reason, rows in found.items()}
        return spans | ({SkipReason.NO_CELLS: blank} if blank else {})

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


def _doubts(part: Part, draft: TableDraft) -> Iterator[Doubt]:
    """Yield what a person should check."""
    if part.is_doubtful:
        yield Doubt.SIDE_BY_SIDE
    if draft.confidence < REVIEW_CONFIDENCE:
        yield Doubt.HEADER
    after = sum(reason == SkipReason.AFTER_DATA for reason in draft.reasons.values())
    if after >= AFTER_DATA_ROWS_MIN:
        yield Doubt.AFTER_DATA


def _with_surroundings(table: TableRegion, grid: Grid, draft: TableDraft) -> TableRegion:
    """Add the rows above and below several tables side by side to the first of them."""
    around = (RowKind.PREAMBLE, RowKind.FOOTER, RowKind.NOTE)
    outside: dict[str, RowSpans] = {
        kind: RowSpans.of(grid.rows[draft.skipped[kind]])
        for kind in around
        if kind in draft.skipped and kind not in table.skipped
    }
    around_reasons = {
        reason: RowSpans.of(
            [
                *table.reasons.get(reason, RowSpans()).rows(),
                *(
                    row
                    for kind, spans in outside.items()
                    for row in spans.rows()
                    if draft.reasons.get(int(np.searchsorted(grid.rows, row))) == reason
                ),
            ]
        )
        for reason in {*table.reasons, *draft.reasons.values()}
    }
    reasons = {reason: spans for reason, spans in around_reasons.items() if spans}
    return replace(table, skipped={**table.skipped, **outside}, reasons=reasons)
