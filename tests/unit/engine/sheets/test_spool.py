from pathlib import Path

import pytest
from tests.unit.engine.sheets.workbook_files import cells_of

from ade_engine.sheets.cells import Block, CellArray, CellError
from ade_engine.sheets.read_limits import ReadLimits, ReadOptions
from ade_engine.sheets.spool import Spool
from ade_engine.sheets.workbook import open_workbook


def _block(first_row: int) -> Block:
    columns = {
        1: CellArray.of(["a", None, CellError("#REF!")]),
        3: CellArray.of([1, 2.5, True]),
        4: CellArray.of(["x", "y" * 50, "z"]),
    }
    return Block(first_row, 3, columns)


@pytest.mark.parametrize("memory_bytes", [0, 500, 10**6])
def test_blocks_are_the_same_from_memory_and_from_the_file(
    tmp_path: Path, memory_bytes: int
) -> None:
    spool = Spool(memory_bytes, tmp_path)
    kept = [_block(row) for row in (1, 4, 100)]
    for block in kept:
        spool.add(block)
    for _ in range(2):
        assert list(spool.read(1, 1000)) == kept
    rows = [row for block in spool.read(3, 100) for row, _ in block.values()]
    assert rows == [3, 4, 5, 6, 100]
    assert list(tmp_path.iterdir()) == []  # the file has no name
    spool.clear()
    assert list(spool.read(1, 1000)) == []


def test_two_readers_do_not_disturb_each_other(tmp_path: Path) -> None:
    spool = Spool(0, tmp_path)
    for row in (1, 4, 7):
        spool.add(_block(row))
    pairs = zip(spool.read(1, 9), spool.read(1, 9), strict=True)
    assert all(first == second for first, second in pairs)
    spool.clear()


def test_a_sheet_is_read_once_and_given_often(tmp_path: Path) -> None:
    path = tmp_path / "text.csv"
    path.write_text("a,b\n" * 50_000)
    options = ReadOptions(ReadLimits(spool_memory_bytes=0), spool_folder=tmp_path)
    with open_workbook(path, options) as book:
        first = cells_of(book.sheets[0])
        path.write_text("")
        assert cells_of(book.sheets[0]) == first
        assert len(first) == 100_000
