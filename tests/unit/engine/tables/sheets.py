"""Make sheets from rows of values, without a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ade_engine.sheets.cells import Block, CellArray
from ade_engine.sheets.coordinates import Range


class MadeSheet:
    """A sheet made from rows; its blocks are small, so that tables span several."""

    def __init__(
        self,
        rows: Iterable[Sequence[object]],
        *,
        merged: Iterable[str] = (),
        block_rows: int = 7,
    ) -> None:
        self._rows = [list(row) for row in rows]
        self._block_rows = block_rows
        self.height = max(
            (number for number, row in enumerate(self._rows, 1) if any_value(row)), default=0
        )
        self.merged = [Range.parse(one) for one in merged]

    def blocks(self, first_row: int = 1, last_row: int | None = None) -> Iterator[Block]:
        for start in range(0, self.height, self._block_rows):
            block = self._block(start)
            last = self.height if last_row is None else last_row
            if block.last_row >= first_row and block.first_row <= last:
                cut = block.rows(first_row, last)
                if cut.columns:
                    yield cut

    def _block(self, start: int) -> Block:
        rows = self._rows[start : min(start + self._block_rows, self.height)]
        width = max(map(len, rows), default=0)
        padded = [[*row, *[None] * (width - len(row))] for row in rows]
        columns = {
            number: CellArray.of(cells) for number, cells in enumerate(zip(*padded, strict=True), 1)
        }
        used = {number: column for number, column in columns.items() if column.kinds.any()}
        return Block(start + 1, len(rows), used)


def any_value(row: Sequence[object]) -> bool:
    return any(cell is not None for cell in row)


def people(count: int, first: int = 1) -> list[Any]:
    """Make data rows: a name, a town, a number, an amount."""
    names = ("Ada Moss", "Bo Lind", "Cy Park", "Di Vance", "Ed Roy", "Fay Holt", "Gus Ahn")
    towns = ("Oslo", "Lima", "Quito", "Riga", "Bern")
    return [
        [f"{names[n % 7]} {n}", towns[n % 5], 1000 + 37 * n, round(12.5 + n * 3.75, 2)]
        for n in range(first, first + count)
    ]


HEADER: list[Any] = ["Name", "Town", "Account", "Amount"]
