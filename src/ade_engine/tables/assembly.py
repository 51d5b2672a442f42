"""Assemble labelled rows into tables.

A header begins a table, and so does data when no table is open. A table continues over blank rows,
totals, groups and notes until the next header. A header with the same texts as that of the open
table is a repetition (after a page break), not a new table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ade_engine.tables.grid import Grid
from ade_engine.tables.labels import REPEATED_SHARE, REPEATED_TEXTS_MIN, Label, LabelledRows
from ade_engine.tables.regions import Contribution, RowKind, SkipReason, TableShape
from ade_engine.tables.spans import RowSpans

HEADER = {Label.HEADER, Label.HEADER_END}
HEADINGS = {Label.PREAMBLE, Label.GROUP}  # which of the two depends on the rows that follow


@dataclass
class TableDraft:
    """A table while its rows are being collected; rows are indexes into the grid."""

    header: list[int] = field(default_factory=list)
    body: list[int] = field(default_factory=list)
    stretches: list[tuple[int, int]] = field(
        default_factory=list
    )  # rows of the sheet that are not in the grid
    skipped: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)  # by row
    confidence: float = 0.0
    why: tuple[Contribution, ...] = ()
    shape: TableShape = TableShape.HEADED

    def skip(self, kind: str, places: list[int]) -> None:
        """Add rows that are not data, by their kind."""
        if places:
            self.skipped.setdefault(kind, []).extend(places)

    @property
    def places(self) -> list[int]:
        """Return the rows that make up the table: header, data, totals, groups."""
        inside = (RowKind.TOTAL, RowKind.GROUP, RowKind.REPEATED_HEADER)
        within = [place for kind in inside for place in self.skipped.get(kind, [])]
        return sorted([*self.header, *self.body, *within])


@dataclass
class DraftTables:
    """The tables of a grid in reading order, and the rows that belong to none."""

    tables: list[TableDraft] = field(default_factory=list)
    unused: dict[str, list[int]] = field(default_factory=dict)


def assemble_tables(labelled: LabelledRows, left_out: RowSpans) -> DraftTables:
    """Assemble rows into tables; rows outside the grid are data of the table around them."""
    return _Assembler(labelled, left_out).assemble()


class _Assembler:
    def __init__(self, labelled: LabelledRows, left_out: RowSpans) -> None:
        self._labelled = labelled
        self._grid = labelled.grid
        self._left_out = list(left_out)
        self._drafts = DraftTables()
        self._open: TableDraft | None = None
        self._header: list[int] = []  # rows of a header that is not complete yet
        self._waiting: list[int] = []  # titles of a table that has not begun yet

    def assemble(self) -> DraftTables:
        reasons = dict(zip(self._labelled.places.tolist(), self._labelled.reasons, strict=True))
        for index, place in enumerate(self._labelled.places.tolist()):
            self._take_left_out(int(self._grid.rows[place]))
            self._take(index, place, self._labelled.kinds[index])
        self._take_left_out(None)
        self._end()
        for draft in self._drafts.tables:
            draft.reasons = {
                place: SkipReason.SAME_HEADER
                if kind == RowKind.REPEATED_HEADER
                else reasons[place] or SkipReason.MODEL
                for kind, places in draft.skipped.items()
                for place in places
            }
        return self._drafts

    def _take_left_out(self, before: int | None) -> None:
        while self._left_out and (before is None or self._left_out[0][0] < before):
            self._data().stretches.append(self._left_out.pop(0))

    def _take(self, index: int, place: int, kind: str) -> None:
        if kind in HEADER:
            self._header.append(place)
            if kind == Label.HEADER_END:
                self._begin(index)
        elif kind == Label.DATA:
            self._data().body.append(place)
        elif kind in HEADINGS or (self._open is None and kind == Label.NOTE):
            self._waiting.append(place)
        else:
            self._data().skip(kind, [place])

    def _begin(self, index: int) -> None:
        """Begin a table at a complete header, or continue the open one after a repeated header."""
        header, self._header = self._header, []
        if self._open is not None and self._repeats(header) and not self._is_titled_anew():
            self._open.skip(RowKind.NOTE, self._waiting)
            self._open.skip(RowKind.REPEATED_HEADER, header)
        else:
            self._open = TableDraft(
                header=header,
                confidence=self._labelled.confidence(index),
                why=self._labelled.why(index),
            )
            self._open.skip(RowKind.PREAMBLE, self._waiting)
            self._drafts.tables.append(self._open)
        self._waiting = []

    def _data(self) -> TableDraft:
        """Return the table that data belongs to; begin one without a header if none is open."""
        if self._header:  # an incomplete header is a title
            self._waiting += self._header
            self._header = []
        if self._open is None:
            self._open = TableDraft(shape=TableShape.HEADERLESS, confidence=0.5)
            self._drafts.tables.append(self._open)
            self._open.skip(RowKind.PREAMBLE, self._waiting)
        else:
            self._open.skip(RowKind.GROUP, self._waiting)
        self._waiting = []
        return self._open

    def _end(self) -> None:
        rest = self._waiting + self._header
        if self._open is not None:
            self._open.skip(RowKind.FOOTER, rest)
        elif rest:
            self._drafts.unused[RowKind.PREAMBLE] = rest

    def _repeats(self, header: list[int]) -> bool:
        """Return whether the last row of a header repeats that of the open table.

        The text of the first column may differ: it may name the group that follows.
        """
        assert self._open is not None
        texts = _texts(self._grid, self._open.header[-1:])
        again = _texts(self._grid, header[-1:])
        common = len(texts & again)
        if common > 0 and common >= self._share_needed() * max(len(texts), len(again)):
            return True
        first = min((column for column, _ in texts | again), default=0)
        others, others_again = ({one for one in part if one[0] != first} for part in (texts, again))
        return len(others) >= REPEATED_TEXTS_MIN and others == others_again

    def _share_needed(self) -> float:
        """Return the share of texts that are the same in a repeated header; all if it is titled."""
        return 1.0 if self._waiting else REPEATED_SHARE

    def _is_titled_anew(self) -> bool:
        """Return whether a blank row and another title than that of the open table are above."""
        assert self._open is not None
        titles = self._open.skipped.get(RowKind.PREAMBLE, [])
        if not titles or not self._waiting:
            return False
        above = [place for place in self._open.places if place < self._waiting[0]]
        apart = bool(self._grid.blank[max(above, default=0) : self._waiting[0]].any())
        before, now = (
            {text for _, text in _texts(self._grid, part[-1:])} for part in (titles, self._waiting)
        )
        return apart and not before & now


def _texts(grid: Grid, places: list[int]) -> set[tuple[int, str]]:
    """Return the texts of header rows with their columns."""
    return {
        (column, text.casefold())
        for place in places
        for column, text in enumerate(grid.texts[place])
        if text
    }
