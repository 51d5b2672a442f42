"""Calamine may fail in any way; the caller gets rows or one clear error."""

import datetime as dt
import gc
import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.sheets.workbook_files import CORPUS, cells_of, needs_corpus, read
from tests.unit.engine.sheets.xls_files import chart, compound, number, shared_text, workbook

from ade_engine.errors import (
    DamagedFile,
    EncryptedFile,
    NoCells,
    OldWorkbook,
    ReaderCrashed,
    TooLarge,
)
from ade_engine.sheets import legacy, legacy_details
from ade_engine.sheets.cells import CellError
from ade_engine.sheets.read_limits import MIB, ReadLimits, ReadOptions
from ade_engine.sheets.sniff import OLE
from ade_engine.sheets.workbook import open_workbook

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
MIMETYPE = "application/vnd.oasis.opendocument.spreadsheet"


def ods(path: Path, rows: str) -> Path:
    """Write a sheet of OpenDocument."""
    content = f"""<?xml version="1.0"?><office:document-content xmlns:office="{OFFICE}:office:1.0"
      xmlns:table="{OFFICE}:table:1.0" xmlns:text="{OFFICE}:text:1.0"><office:body>
      <office:spreadsheet><table:table table:name="One">{rows}</table:table></office:spreadsheet>
      </office:body></office:document-content>"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", MIMETYPE)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return path


CELLS = """<table:table-row table:number-rows-repeated="3"><table:table-cell/></table:table-row>
<table:table-row><table:table-cell/><table:table-cell office:value-type="string"><text:p>a</text:p>
</table:table-cell><table:table-cell office:value-type="float" office:value="2.5"/>
<table:table-cell office:value-type="boolean" office:boolean-value="true"/>
<table:table-cell office:value-type="date" office:date-value="2024-02-29"/></table:table-row>"""


@pytest.mark.parametrize("fork", [True, False])
def test_cells_have_absolute_places(tmp_path: Path, fork: bool) -> None:
    path = ods(tmp_path / "book.ods", CELLS.replace("\n", ""))
    with open_workbook(path, ReadOptions(fork=fork)) as book:
        assert book.format == "ods"
        assert [sheet.name for sheet in book.sheets] == ["One"]
        assert cells_of(book.sheets[0]) == {
            (4, 2): "a",
            (4, 3): 2.5,
            (4, 4): True,
            (4, 5): dt.date(2024, 2, 29),
        }
        assert book.sheets[0].notes == ["errors_read_as_empty"]


def test_a_rectangle_without_end_is_too_large_or_damage(tmp_path: Path) -> None:
    rows = """<table:table-row table:number-rows-repeated="1048575"><table:table-cell/>
      </table:table-row><table:table-row><table:table-cell table:number-columns-repeated="16383"/>
      <table:table-cell office:value-type="float" office:value="1"/></table:table-row>"""
    path = ods(tmp_path / "far.ods", rows.replace("\n      ", ""))
    with pytest.raises((TooLarge, DamagedFile, ReaderCrashed)):
        read(path)


class PanicException(BaseException):
    """As pyo3 raises it."""


def _panic() -> None:
    raise PanicException("secret")


def _eat() -> None:
    kept = [bytearray(64 * MIB) for _ in range(64)]
    raise AssertionError(len(kept))


def _spin() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("fork", "act", "error"),
    [
        (True, _panic, ReaderCrashed),
        (False, _panic, ReaderCrashed),
        (True, os.abort, ReaderCrashed),
        (True, _eat, TooLarge),
        (True, _spin, ReaderCrashed),
    ],
)
def test_whatever_the_reader_does_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork: bool, act: Any, error: type[Exception]
) -> None:
    def sheets(path: Path, limits: ReadLimits) -> Iterator[legacy.Message]:
        yield legacy.LegacySheet("One", False, [], 1)
        act()

    monkeypatch.setattr(legacy, "_sheets", sheets)
    path = ods(tmp_path / "book.ods", "")
    # A busy machine may need more than a second of CPU time to fill the memory.
    seconds = 1 if act is _spin else 30
    limits = ReadLimits(reader_memory_bytes_max=512 * MIB, reader_cpu_seconds_max=seconds)
    with pytest.raises(error) as caught:
        open_workbook(path, ReadOptions(limits, fork=fork))
    assert "secret" not in str(caught.value)


def test_where_forking_is_forbidden_the_file_is_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise PermissionError

    monkeypatch.setattr(os, "fork", refuse)
    path = ods(tmp_path / "book.ods", CELLS.replace("\n", ""))
    assert len(read(path)) == 4


def test_no_child_and_no_descriptor_is_left(tmp_path: Path) -> None:
    path = ods(tmp_path / "book.ods", CELLS.replace("\n", ""))
    read(path)
    gc.collect()  # readers that failed in other tests are closed with their tracebacks
    before = _descriptors(), _children()
    read(path)
    assert (_descriptors(), _children()) == before


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _children() -> list[str]:
    return sorted(
        child
        for file in Path("/proc/self/task").glob("*/children")
        for child in file.read_text().split()
    )


@needs_corpus
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("calamine/pass_protected.xlsb", EncryptedFile),
        ("calamine/pass_protected.ods", EncryptedFile),
        ("calamine/issue_385.xls", EncryptedFile),
        ("calamine/ptgexp-truncated-operand.xls", ReaderCrashed),
        ("calamine/OOM_alloc3.xls", DamagedFile),
    ],
)
def test_known_bad_files_end_in_their_error(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(CORPUS / "workbooks" / name)


@needs_corpus
@pytest.mark.parametrize("ending", ["xls", "xlsb", "ods", "xlsx"])
def test_the_same_workbook_in_four_formats_has_the_same_cells(ending: str) -> None:
    folder = CORPUS / "workbooks" / "pandas"
    assert read(folder / f"test1.{ending}") == read(folder / "test1.xlsx")


@needs_corpus
@pytest.mark.parametrize("name", ["pandas/test3.xls", "pandas/test3.xlsb"])
def test_errors_in_binary_workbooks_differ_from_empty_cells(name: str) -> None:
    assert read(CORPUS / "workbooks" / name)[2, 1] == CellError("#N/A")


@needs_corpus
def test_hidden_rows_and_columns_of_old_workbooks_are_known() -> None:
    with open_workbook(CORPUS / "workbooks" / "calamine" / "optional_records.xls") as book:
        assert {22, 23, 24} <= book.sheets[0].hidden_columns


def test_a_cell_far_away_in_an_old_workbook_is_noticed_before_it_is_read(tmp_path: Path) -> None:
    stream = workbook(("Far", 0, number(65_535, 255, 1.0)))
    with pytest.raises(TooLarge, match="distant"):
        open_workbook(compound(tmp_path / "far.xls", Workbook=stream))


CHARTED = number(0, 0, 1.5) + chart(number(0, 0, 99), number(7, 7, 77)) + number(1, 0, 2.5)


@pytest.mark.parametrize("fork", [True, False])
def test_the_numbers_that_a_chart_caches_are_not_cells(tmp_path: Path, fork: bool) -> None:
    path = compound(tmp_path / "chart.xls", Workbook=workbook(("One", 0, CHARTED)))
    assert read(path, ReadOptions(fork=fork)) == {(1, 1): 1.5, (2, 1): 2.5}


def test_charts_in_charts_are_left_out(tmp_path: Path) -> None:
    nested = number(0, 0, 1.5) + chart(chart(number(0, 0, 98)), number(0, 0, 99))
    path = compound(tmp_path / "chart.xls", Workbook=workbook(("One", 0, nested)))
    assert read(path) == {(1, 1): 1.5}


def test_the_newer_of_two_formats_in_one_file_is_corrected(tmp_path: Path) -> None:
    old = workbook(("Old", 0, number(5, 5, 55)))
    path = compound(tmp_path / "both.xls", Book=old, Workbook=workbook(("One", 0, CHARTED)))
    assert read(path) == {(1, 1): 1.5, (2, 1): 2.5}


def test_texts_are_utf_16_whatever_code_page_the_file_names(tmp_path: Path) -> None:
    texts = ("Jürgen", "vs", "日本")
    cells = b"".join(shared_text(row, 0, row) for row in range(len(texts)))
    stream = workbook(("One", 0, cells), texts=texts, code_page=1252)
    path = compound(tmp_path / "texts.xls", Workbook=stream)
    assert list(read(path).values()) == list(texts)


def test_a_workbook_of_charts_is_not_called_damaged(tmp_path: Path) -> None:
    stream = workbook(("Picture", 2, number(0, 0, 1)))
    with pytest.raises(NoCells, match="only chart sheets"):
        open_workbook(compound(tmp_path / "chart.xls", Workbook=stream))


def test_a_chart_sheet_beside_others_is_named(tmp_path: Path) -> None:
    stream = workbook(("One", 0, number(0, 0, 1)), ("Picture", 2, number(0, 0, 9)))
    with open_workbook(compound(tmp_path / "chart.xls", Workbook=stream)) as book:
        assert [sheet.name for sheet in book.sheets] == ["One"]
        assert [(sheet.name, sheet.reason) for sheet in book.unread] == [("Picture", "chart")]


def test_a_workbook_of_excel_95_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.xls"
    path.write_bytes(struct.pack("<HHHH", 0x0809, 8, 0x0500, 5) + bytes(4) + bytes(100))
    with pytest.raises(OldWorkbook, match="Excel 5 or Excel 95"):
        open_workbook(path)


@needs_corpus
@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [("xls_cross_sheet_chart.xls", (1, 2), None), ("OOM_alloc.xls", (4, 2), None)],
)
def test_charts_of_real_workbooks_change_no_cell(
    name: str, cell: tuple[int, int], value: object
) -> None:
    (path,) = CORPUS.rglob(name)
    assert read(path).get(cell) == value


@pytest.mark.parametrize("size", [0, 100, 600, 5_000])
def test_a_broken_file_system_is_not_understood(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file.xls"
    path.write_bytes((OLE + bytes(range(256)) * 20)[:size])
    with path.open("rb") as file:
        assert legacy_details.scan_legacy(file, "xls", ReadLimits()) is None
