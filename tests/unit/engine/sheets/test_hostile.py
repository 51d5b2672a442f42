"""Files that attack their reader, or whose content does not match their name."""

import io
import struct
import time
import zipfile
from pathlib import Path

import pytest
from tests.unit.engine.sheets.workbook_files import MAIN, read, read_both_ways, sheet_xml, sst, xlsx

from ade_engine.errors import (
    DamagedFile,
    EmptyFile,
    EncryptedFile,
    OldWorkbook,
    TooLarge,
    UnknownFormat,
    UnreadableFile,
    UnsafeFile,
)
from ade_engine.sheets.read_limits import MIB, ReadLimits, ReadOptions
from ade_engine.sheets.sniff import OLE
from ade_engine.sheets.workbook import open_workbook

pytestmark = pytest.mark.slow

ROW = '<row r="1"><c r="A1"><v>1</v></c></row>'


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "book.xlsx"


def test_a_bomb_is_stopped_while_it_inflates(book: Path) -> None:
    bomb = sheet_xml(ROW) + " " * (200 * MIB)
    xlsx(book, bomb)
    started = time.process_time()
    with pytest.raises(TooLarge, match="ratio_max"):
        read(book)
    assert time.process_time() - started < 5


def test_a_bomb_that_lies_about_its_size_is_stopped_too(book: Path) -> None:
    xlsx(book, sheet_xml(ROW), strings=b"<sst>" + b" " * (100 * MIB))
    content = bytearray(book.read_bytes())
    for found in (b"PK\3\4", b"PK\1\2"):  # the sizes in both headers of every part
        at = content.find(found)
        while at >= 0:
            place = at + (22 if found == b"PK\3\4" else 24)
            content[place : place + 4] = struct.pack("<I", 100)
            at = content.find(found, at + 4)
    book.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        read(book)
    assert caught.value.code in ("file_too_large", "damaged_file")


def test_a_part_has_a_limit_of_its_own(book: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 60_000))
    xlsx(book, sheet_xml(rows))
    with pytest.raises(TooLarge):
        read(book, ReadOptions(ReadLimits(part_bytes_max=MIB)))
    with pytest.raises(TooLarge, match="cells_max"):
        read(book, ReadOptions(ReadLimits(cells_max=10_000)))


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        "<!DOCTYPE x ["
        + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(10))
        + "]>",
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
    ],
    ids=["external", "laughs", "remote"],
)
@pytest.mark.parametrize("part", ["sheet", "strings", "workbook"])
def test_a_document_type_is_refused_wherever_it_is(book: Path, declaration: str, part: str) -> None:
    entity = "&e;" if "SYSTEM" in declaration else "&e9;"
    sheet = sheet_xml(f'<row r="1"><c r="A1" t="str"><v>{entity}</v></c></row>')
    if part == "sheet":
        xlsx(book, declaration + sheet)
    elif part == "strings":
        cell = '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'
        xlsx(book, sheet_xml(cell), strings=declaration + sst(f"<t>{entity}</t>"))
    else:
        parts = {"xl/workbook.xml": f"{declaration}<workbook>{entity}</workbook>".encode()}
        xlsx(book, sheet_xml(ROW), parts=parts)
    with pytest.raises(UnsafeFile):
        read(book)


def test_a_password_is_never_asked_for(book: Path) -> None:
    name = "EncryptedPackage".encode("utf-16-le")
    book.write_bytes(OLE + b"\0" * 600 + name + b"\0" * 600)
    with pytest.raises(EncryptedFile):
        read(book)
    xlsx(book, sheet_xml(ROW))
    content = bytearray(book.read_bytes())
    at = content.rfind(b"PK\1\2")
    while at >= 0:
        content[at + 8] |= 1
        at = content.rfind(b"PK\1\2", 0, at)
    book.write_bytes(content)
    with pytest.raises(EncryptedFile):
        read(book)


def test_a_file_cut_anywhere_is_damage_or_what_is_left(book: Path, tmp_path: Path) -> None:
    xlsx(book, sheet_xml(ROW), strings=sst("<t>x</t>"))
    whole = book.read_bytes()
    cut = tmp_path / "cut.xlsx"
    for size in range(4, len(whole), 97):
        cut.write_bytes(whole[:size])
        with pytest.raises(UnreadableFile):
            read(cut)


def test_broken_xml_and_broken_packing_are_damage(book: Path) -> None:
    for sheet in (sheet_xml(ROW)[:-30], sheet_xml(ROW[:-10]), "<worksheet/>x", "no xml", ""):
        xlsx(book, sheet)
        with pytest.raises(DamagedFile):
            read(book)
    xlsx(book, sheet_xml(ROW))
    content = book.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entry = archive.getinfo("xl/worksheets/s1.xml")
    at = entry.header_offset + 30 + len(entry.filename) + 3
    book.write_bytes(content[:at] + b"\xff\xff\xff\xff" + content[at + 4 :])
    with pytest.raises(DamagedFile):
        read(book)


def test_a_changed_part_is_noticed(book: Path) -> None:
    xlsx(book, sheet_xml(ROW), compression=zipfile.ZIP_STORED)
    content = book.read_bytes()
    assert content.count(b"<v>1</v>") == 1
    book.write_bytes(content.replace(b"<v>1</v>", b"<v>9</v>"))
    with pytest.raises(DamagedFile, match="checksum"):
        read(book)


def test_the_content_tells_what_a_file_is(tmp_path: Path) -> None:
    text = tmp_path / "text.xlsx"
    text.write_text("a;b\n1;2\n3;4\n")
    with open_workbook(text) as opened:
        assert (opened.format, opened.delimiter) == ("csv", ";")
    page = tmp_path / "page.xls"
    page.write_text("<html><body><table><tr><td>a</td><td>b</td></tr></table></body></html>")
    with open_workbook(page) as opened:
        assert opened.format == "html"
    workbook = xlsx(tmp_path / "workbook.csv", sheet_xml(ROW))
    with open_workbook(workbook) as opened:
        assert opened.format == "xlsx"
    before = tmp_path / "before.bin"
    before.write_bytes(b"#!/bin/sh\n" + workbook.read_bytes())
    assert read(before) == {(1, 1): 1}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", EmptyFile),
        (b"  \r\n\t ", EmptyFile),
        (b"%PDF-1.7 ...", UnknownFormat),
        (b"\x89PNG\r\n\x1a\n....", UnknownFormat),
        (OLE + b"\0" * 2000, UnknownFormat),
        (b"\x09\x08\x08\x00\x00\x05", OldWorkbook),
        (b"<?xml version='1.0'?><note/>", UnknownFormat),
        (b"<html><p>Please sign in</p></html>", UnknownFormat),
        (b"PK\3\4" + b"\0" * 100, DamagedFile),
        (b"\0\1\2\3" * 1000, UnknownFormat),
    ],
)
def test_other_files_end_in_a_clear_error(
    tmp_path: Path, content: bytes, kind: type[UnreadableFile]
) -> None:
    path = tmp_path / "file.xls"
    path.write_bytes(content)
    with pytest.raises(kind) as caught:
        read(path)
    assert caught.value.code == kind.code
    assert caught.value.advice in str(caught.value)


def test_a_zip_of_something_else_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "file.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(UnknownFormat):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<document/>")
    with pytest.raises(UnknownFormat):
        read(path)


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        read(tmp_path / "missing.xlsx")


def test_a_million_empty_rows_are_nothing(book: Path) -> None:
    rows = "".join(f'<row r="{n}" ht="15"/>' for n in range(1, 1_000_001))
    xlsx(book, sheet_xml(rows))
    with open_workbook(book) as opened:
        sheet = opened.sheets[0].scan()
        assert (sheet.height, list(sheet.blocks())) == (0, [])


def test_sixteen_thousand_columns_are_read(book: Path) -> None:
    from ade_engine.sheets.coordinates import column_letters

    cells = "".join(f'<c r="{column_letters(n)}1"><v>{n}</v></c>' for n in range(1, 16_385))
    xlsx(book, sheet_xml(f'<row r="1">{cells}</row>'))
    assert read_both_ways(book) == {(1, n): n for n in range(1, 16_385)}


def test_cells_that_run_away_to_the_right_make_small_blocks(book: Path) -> None:
    from ade_engine.sheets.coordinates import a1

    rows = "".join(f'<row r="{n}"><c r="{a1(n, n)}"><v>{n}</v></c></row>' for n in range(1, 16_385))
    xlsx(book, sheet_xml(rows))
    with open_workbook(book) as opened:
        blocks = list(opened.sheets[0].blocks())
        assert max(block.height * len(block.columns) for block in blocks) <= 2_000_000
        assert sum(len(block.columns) for block in blocks) == 16_384


def test_a_row_that_never_ends_is_too_large(book: Path) -> None:
    cells = '<c r="A1" t="inlineStr"><is><t>' + "0123456789" * 300_000 + "</t></is></c>"
    xlsx(book, sheet_xml(f'<row r="1">{cells}</row>'))
    limits = ReadLimits(row_bytes_max=MIB)
    with pytest.raises(TooLarge, match="row_bytes_max"):
        read(book, ReadOptions(limits))
    assert len(str(read(book)[1, 1])) == 3_000_000


def test_a_row_outside_of_any_sheet_is_damage(book: Path) -> None:
    xlsx(book, sheet_xml('<row r="1048577"><c r="A1048577"><v>1</v></c></row>'))
    with pytest.raises(DamagedFile):
        read(book)
    xlsx(book, sheet_xml('<row r="1"><c r="XFE1"><v>1</v></c></row>'))
    with pytest.raises(DamagedFile):
        read(book)


def test_numbers_beyond_all_numbers_are_damage(book: Path) -> None:
    digits = "9" * 5_000
    for sheet in (
        sheet_xml(f'<row r="{digits}"><c r="A1"><v>1</v></c></row>'),
        sheet_xml(f'<row r="1"><c r="A1" t="s"><v>{digits}</v></c></row>'),
        sheet_xml(f'<row r="1"><c r="A1" s="{digits}"><v>1</v></c></row>'),
    ):
        xlsx(book, sheet, strings=sst("<t>x</t>"))
        with pytest.raises(DamagedFile):
            read(book)


def test_no_message_holds_a_cells_value(book: Path) -> None:
    secret = "canary-7f3a"
    cell = f'<c r="A1" t="str"><v>{secret}</v></c>'
    for sheet in (
        sheet_xml(f'<row r="1">{cell}<c r="B1" t="s"><v>{secret}</v></c></row>'),
        sheet_xml(f'<row r="1">{cell}</row>')[:-20],
        f'<worksheet xmlns="{MAIN}"><sheetData><row r="1">{cell}<{secret}></row></sheetData>',
    ):
        xlsx(book, sheet)
        with pytest.raises(UnreadableFile) as caught:
            read(book)
        assert secret not in str(caught.value) + repr(caught.value)
