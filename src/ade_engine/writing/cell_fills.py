"""Fill cells whose rows are already written, because a check needed the whole table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from ade_engine.package.issues import Severity
from ade_engine.sheets.coordinates import a1, column_number
from ade_engine.writing.styles import StyleTable

_STYLE = re.compile(rb' s="(\d+)"')
_CELL = re.compile(rb'<c r="([A-Z]+)')


@dataclass(frozen=True, slots=True, order=True)
class CellFill:
    """A cell that gets the fill of a severity."""

    row: int
    column: int
    severity: Severity


def fill_cells(xml: bytes, fills: Iterable[CellFill], styles: StyleTable) -> bytes:
    """Return the XML of rows with these cells filled; each fill must be in one of the rows."""
    pieces: list[bytes] = []
    done = 0
    for number, mine in groupby(sorted(fills), lambda fill: fill.row):
        start = xml.index(b'<row r="%d">' % number, done)
        end = xml.index(b"</row>", start)
        row = xml[start:end]
        for fill in mine:
            row = _filled(row, fill, styles)
        pieces += [xml[done:start], row]
        done = end
    return b"".join([*pieces, xml[done:]])


def _filled(row: bytes, fill: CellFill, styles: StyleTable) -> bytes:
    reference = f'<c r="{a1(fill.row, fill.column)}"'.encode()
    at = row.find(reference)
    if at < 0:
        style = styles.filled(0, fill.severity)
        place = next(
            (
                found.start()
                for found in _CELL.finditer(row)
                if column_number(found[1].decode()) > fill.column
            ),
            len(row),
        )
        return row[:place] + reference + b' s="%d"/>' % style + row[place:]
    after = at + len(reference)
    found = _STYLE.match(row, after)
    style = styles.filled(int(found[1]) if found else 0, fill.severity)
    return row[:after] + b' s="%d"' % style + row[found.end() if found else after :]
