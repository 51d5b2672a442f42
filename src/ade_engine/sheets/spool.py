"""Keep blocks so that they can be read again: in memory at first, then in a compressed file.

The file has no name, so it disappears with the process, however the process ends.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from ade_engine.sheets.cells import Block, CellArray

_CELL_BYTES = 25  # a kind, a number and a reference to a text


class Spool:
    """Store blocks in the order of their rows, and read them any number of times."""

    def __init__(self, memory_bytes: int, folder: Path | None = None) -> None:
        self._memory_left = memory_bytes
        self._folder = folder
        self._blocks: list[Block | tuple[int, int, int, int]] = []
        self._texts: list[frozenset[int]] = []  # the columns of each block that hold text
        self._file: IO[bytes] | None = None

    def add(self, block: Block) -> None:
        """Keep a block."""
        self._texts.append(frozenset(_columns_with_text(block)))
        size = sum(
            len(column) * _CELL_BYTES + int(column.text.estimated_size())
            for column in block.columns.values()
        )
        if size <= self._memory_left:
            self._memory_left -= size
            self._blocks.append(block)
            return
        self._memory_left = 0  # later blocks go to the file, too, so that it is read in order
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="ade-spool-")  # noqa: SIM115
        start = self._file.seek(0, 2)
        _frame(block).write_ipc(self._file, compression="lz4")
        self._blocks.append((block.first_row, block.height, start, self._file.tell() - start))

    def read(
        self, first_row: int, last_row: int, text_of: frozenset[int] | None = None
    ) -> Iterator[Block]:
        """Yield the blocks from `first_row` to `last_row`, both included, cut to these rows.

        With `text_of`, yield only blocks that hold text in these columns, and only the columns.
        """
        for kept, texts in zip(self._blocks, self._texts, strict=True):
            start, height = (kept.first_row, kept.height) if isinstance(kept, Block) else kept[:2]
            if start + height <= first_row:
                continue
            if start > last_row:
                return
            wanted = None if text_of is None else sorted(text_of & texts)
            if wanted is not None and not wanted:
                continue
            block = kept if isinstance(kept, Block) else self._load(*kept, wanted)
            if start < first_row or start + height - 1 > last_row:
                block = block.rows(first_row, last_row)
            yield block

    def _load(
        self, first_row: int, height: int, start: int, size: int, wanted: list[int] | None
    ) -> Block:
        assert self._file is not None
        self._file.seek(start)
        columns = None
        if wanted is not None:
            columns = [f"{part}{number}" for number in wanted for part in ("k", "t")]
        frame = pl.read_ipc(io.BytesIO(self._file.read(size)), columns=columns)
        return _block(first_row, height, frame)

    def clear(self) -> None:
        """Forget everything."""
        self._blocks, self._texts = [], []
        if self._file is not None:
            self._file.close()
            self._file = None


def _columns_with_text(block: Block) -> Iterator[int]:
    for number, column in block.columns.items():
        if column.text.null_count() < len(column):
            yield number


def _frame(block: Block) -> pl.DataFrame:
    """Convert a block to a data frame, leaving out arrays that hold nothing."""
    parts: dict[str, pl.Series] = {}
    for number, column in block.columns.items():
        parts[f"k{number}"] = pl.Series(column.kinds)
        if not np.isnan(column.numbers).all():
            parts[f"n{number}"] = pl.Series(column.numbers)
        if column.text.null_count() < len(column):
            parts[f"t{number}"] = column.text
    return pl.DataFrame(parts)


def _block(first_row: int, height: int, frame: pl.DataFrame) -> Block:
    columns: dict[int, CellArray] = {}
    names = set(frame.columns)
    empty = CellArray.empty(height)
    for name in frame.columns:
        if name.startswith("k"):
            number = name[1:]
            columns[int(number)] = CellArray(
                frame[name].to_numpy(),
                frame["n" + number].to_numpy() if "n" + number in names else empty.numbers,
                frame["t" + number] if "t" + number in names else empty.text,
            )
    return Block(first_row, height, columns)
