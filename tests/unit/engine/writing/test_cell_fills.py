"""Cells are filled as if their issues had been known when their rows were written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from tests.unit.engine.sheets.workbook_files import read

from ade_engine.package.issues import Severity
from ade_engine.sheets.cells import CellArray
from ade_engine.writing import workbook_writer
from ade_engine.writing.sheet_writer import MARKS
from ade_engine.writing.workbook_writer import WorkbookWriter

VALUES = ["text", 1.5, None, "=1+1", True, "<&>"]
COLOURS = {Severity.ERROR: "FFFFC7CE", Severity.WARNING: "FFFFEB9C", Severity.INFO: "FFDDEBF7"}
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(
            st.tuples(st.sampled_from(VALUES), st.integers(0, 3), st.integers(0, 3)),
            min_size=width,
            max_size=width,
        ),
        min_size=1,
        max_size=12,
    )
)


@settings(deadline=None, max_examples=40)
@given(rows=tables, block_rows=st.integers(1, 5))
def test_early_and_late_marks_fill_the_same_cells_and_change_no_value(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[tuple[object, int, int]]],
    block_rows: int,
) -> None:
    path = tmp_path_factory.mktemp("out") / "out.xlsx"
    columns = [CellArray.of([cell[0] for cell in column]) for column in zip(*rows, strict=True)]
    early = [np.array([cell[1] for cell in column], np.uint8) for column in zip(*rows, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workbook_writer, "BLOCK_ROWS", block_rows)
        writer = WorkbookWriter(path)
        writer.add_sheet("Out", [f"h{at}" for at in range(len(columns))])
        writer.write(columns, early)
        for row, cells in enumerate(rows, 2):
            for column, (_, _, late) in enumerate(cells, 1):
                severity = MARKS[late]
                if severity is not None:
                    writer.sheet.fill([row], column, severity)
        writer.close()
    sheet = load_workbook(path)["Out"]
    for row, cells in enumerate(rows, 2):
        for column, (_, first, late) in enumerate(cells, 1):
            severity = MARKS[max(first, late)]
            found = sheet.cell(row, column).fill
            assert found.patternType == ("solid" if severity else None)
            assert severity is None or found.fgColor.rgb == COLOURS[severity]
    values = {place: value for place, value in read(path).items() if place[0] > 1}
    assert values == {
        (row, column): cell[0]
        for row, cells in enumerate(rows, 2)
        for column, cell in enumerate(cells, 1)
        if cell[0] is not None
    }


def test_the_file_is_whole_after_many_late_fills(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    writer = WorkbookWriter(path)
    writer.add_sheet("Out", ["n", "t"])
    count = 30_000
    writer.write([CellArray.of(range(count)), CellArray.of([f"t{n}" for n in range(count)])])
    writer.sheet.fill(list(range(2, count, 1_000)), 2, Severity.WARNING)
    writer.close()
    assert len(read(path)) == 2 * count + 2
    sheet = load_workbook(path)["Out"]
    assert sheet["B1002"].fill.fgColor.rgb == COLOURS[Severity.WARNING]
    assert sheet["B1003"].fill.patternType is None
