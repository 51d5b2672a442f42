"""A workbook is read back with the same cells, by the engine and by other programs."""

import csv
import datetime as dt
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from tests.unit.engine.sheets.workbook_files import Cells, cells_of, fast_path_reads, read

from ade_engine.sheets.cells import CellArray, CellError, CellKind
from ade_engine.sheets.coordinates import COLUMNS_MAX, ROWS_MAX
from ade_engine.sheets.workbook import open_workbook
from ade_engine.writing import workbook_writer
from ade_engine.writing.text_xml import TEXT_CHARS_MAX
from ade_engine.writing.workbook_writer import WorkbookWriter
from ade_engine.writing.zip_writer import OutputTooLarge

pytestmark = pytest.mark.slow

SOFFICE = shutil.which("soffice") or shutil.which("libreoffice")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"))
moments = st.datetimes(dt.datetime(1900, 3, 1), dt.datetime(9999, 12, 31)).map(  # noqa: DTZ001
    lambda moment: moment.replace(microsecond=0)
)
values = st.one_of(
    st.none(),
    texts,
    st.integers(-(2**60), 2**60).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.dates(dt.date(1900, 3, 1)),
    st.times().map(lambda time: time.replace(microsecond=0)),
    moments,
    st.sampled_from(["#REF!", "#N/A"]).map(CellError),
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(values, min_size=width, max_size=width), max_size=12)
)


def write(path: Path, rows: list[list[object]], header: list[str] | None = None) -> Path:
    """Write rows of Python values."""
    writer = WorkbookWriter(path)
    writer.add_sheet("Out", header or ["h"] * (len(rows[0]) if rows else 1))
    writer.write([CellArray.of(column) for column in zip(*rows, strict=True)])
    writer.close()
    return path


def _cells(rows: list[list[object]]) -> Cells:
    columns = [CellArray.of(column).values() for column in zip(*rows, strict=True)]
    return {
        (index + 2, column): value
        for column, found in enumerate(columns, 1)
        for index, value in enumerate(found)
        if value not in (None, "")
    }


@settings(deadline=None, max_examples=60)
@given(rows=tables)
@example(rows=[["=\x1f"]])
def test_cells_are_read_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[object]]
) -> None:
    path = write(tmp_path_factory.mktemp("out") / "out.xlsx", rows)
    found = {place: value for place, value in read(path).items() if place[0] > 1}
    assert found == _cells(rows)
    assert fast_path_reads(path)


def test_others_read_the_same_cells(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["=1+1", 1, dt.date(2024, 2, 29), True],
        [" spaced\nlines ", 0.1, dt.datetime(2024, 2, 29, 13, 5, 7), False],  # noqa: DTZ001
        ["<&>\"'", -1e300, dt.time(6, 30), None],
        ["+49 30", 123456789012, dt.date(1900, 1, 1), CellError("#N/A")],
        [None, 2, None, "@x"],
    ]
    path = write(tmp_path / "out.xlsx", rows, ["Text", "Number", "Date", "Any"])
    sheet = load_workbook(path).active
    found = [list(row) for row in sheet.iter_rows(min_row=2)]
    assert [cell.value for cell in found[0]] == ["=1+1", 1, dt.datetime(2024, 2, 29), True]  # noqa: DTZ001
    assert found[0][0].data_type == "s"
    assert found[0][0].quotePrefix
    assert found[0][2].number_format == "yyyy\\-mm\\-dd"
    assert found[1][0].value == " spaced\nlines "
    assert found[1][2].value == dt.datetime(2024, 2, 29, 13, 5, 7)  # noqa: DTZ001
    assert [cell.value for cell in found[2]] == ["<&>\"'", -1e300, dt.time(6, 30), None]
    assert [cell.value for cell in found[3]][1:] == [
        123456789012,
        dt.datetime(1900, 1, 1),  # noqa: DTZ001
        "#N/A",
    ]
    assert [cell.value for cell in sheet[1]] == ["Text", "Number", "Date", "Any"]
    assert sheet.freeze_panes == "A2"


@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed")
def test_libreoffice_reads_the_same_cells(tmp_path: Path) -> None:
    rows: list[list[object]] = [["=1+1", 1.5], ["ümlaut", 2], ["a,b", 3], [None, 4]]
    path = write(tmp_path / "out.xlsx", rows, ["Text", "Number"])
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    comma_quote_utf8 = "csv:Text - txt - csv (StarCalc):44,34,76,1"
    convert = ["--headless", "--convert-to", comma_quote_utf8, "--outdir", str(tmp_path), str(path)]
    subprocess.run([str(SOFFICE), profile, *convert], check=True, timeout=120)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["Text", "Number"],
            ["=1+1", "1.5"],
            ["ümlaut", "2"],
            ["a,b", "3"],
            ["", "4"],
        ]


def test_the_same_cells_give_the_same_bytes(tmp_path: Path) -> None:
    rows: list[list[object]] = [[n, f"t{n}", None] for n in range(20_000)]
    first, second = (write(tmp_path / name, rows) for name in ("a.xlsx", "b.xlsx"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_more_rows_than_a_sheet_holds_go_on_in_the_next_one(tmp_path: Path) -> None:
    height = ROWS_MAX + 10
    column = CellArray(
        np.full(height, CellKind.NUMBER, np.uint8),
        np.arange(height, dtype=np.float64),
        pl.Series([None], dtype=pl.String).new_from_index(0, height),
    )
    writer = WorkbookWriter(tmp_path / "long.xlsx")
    writer.add_sheet("A name that is as long as it may be, and more", ["n"])
    writer.write([column])
    writer.close()
    with open_workbook(tmp_path / "long.xlsx") as book:
        first, second = book.sheets
        assert len(first.name) <= 31
        assert second.name.endswith(" (2)")
        numbers = [
            number
            for sheet in book.sheets
            for block in sheet.blocks(2)
            for number in block.columns[1].numbers.tolist()
        ]
        assert numbers == list(range(height))
        assert first.height == ROWS_MAX
        assert cells_of(second)[1, 1] == "n"


def test_a_part_that_grows_too_large_goes_on_in_the_next_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook_writer, "PART_BYTES_MAX", 100_000)
    monkeypatch.setattr(workbook_writer, "BLOCK_ROWS", 1_000)
    path = write(tmp_path / "out.xlsx", [["x" * 100] for _ in range(3_000)])
    with open_workbook(path) as book:
        assert len(book.sheets) == 3
        assert sum(len(cells_of(sheet)) - 1 for sheet in book.sheets) == 3_000


def test_names_of_sheets_are_made_possible(tmp_path: Path) -> None:
    writer = WorkbookWriter(tmp_path / "out.xlsx")
    names = [writer.add_sheet(name, ["h"]) for name in ("a/b:c", "A b c", "", "'q'", "[x]?*", "")]
    writer.close()
    assert names == ["a b c", "A b c (2)", "Sheet", "q", "x", "Sheet (2)"]
    assert load_workbook(tmp_path / "out.xlsx").sheetnames == names


def test_what_no_cell_can_hold_is_changed_and_counted(tmp_path: Path) -> None:
    writer = WorkbookWriter(tmp_path / "out.xlsx")
    writer.add_sheet("Out", ["a", "b", "c"])
    long = "ä" * (TEXT_CHARS_MAX + 5)
    rows = [[long, float("inf"), dt.date(1850, 6, 1)], ["_x0041_\x07", float("nan"), "\uffff"]]
    writer.write([CellArray.of(column) for column in zip(*rows, strict=True)])
    writer.close()
    assert writer.cut_texts == 1
    found = read(tmp_path / "out.xlsx")
    assert found[2, 1] == "ä" * TEXT_CHARS_MAX
    assert found[2, 2] == found[3, 2] == CellError("#NUM!")
    assert found[2, 3] == "1850-06-01"
    assert found[3, 1] == "_x0041_\x07"
    assert found[3, 3] == "\ufffd"


def test_the_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    writer = WorkbookWriter(path)
    writer.add_sheet("Out", ["h"])
    assert not path.exists()
    writer.abandon()
    assert list(tmp_path.iterdir()) == []
    empty = WorkbookWriter(path)
    empty.close()
    assert load_workbook(path).sheetnames == ["Sheet1"]


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    writer = WorkbookWriter(tmp_path / "out.xlsx")
    with pytest.raises(OutputTooLarge):
        writer.add_sheet("Out", ["h"] * (COLUMNS_MAX + 1))
    writer.abandon()


def test_empty_columns_and_no_rows_are_written(tmp_path: Path) -> None:
    writer = WorkbookWriter(tmp_path / "out.xlsx")
    writer.add_sheet("Out", ["a", "b"])
    writer.write([CellArray.of([]), CellArray.of([])])
    writer.write([CellArray.of([None, None]), CellArray.of([None, "x"])])
    writer.close()
    assert read(tmp_path / "out.xlsx") == {(1, 1): "a", (1, 2): "b", (3, 2): "x"}
