import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.sheets.workbook_files import (
    Cells,
    cells_of,
    fast_path_reads,
    read,
    read_both_ways,
)

from ade_engine.errors import EmptyFile, TooLarge, UnknownFormat
from ade_engine.sheets.delimiter import detect_delimiter
from ade_engine.sheets.read_limits import ReadLimits, ReadOptions
from ade_engine.sheets.workbook import open_workbook

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
records = st.lists(st.lists(st.text(characters, max_size=12), min_size=1, max_size=6), max_size=20)


def _cells(rows: list[list[str]]) -> Cells:
    return {
        (row, column): text
        for row, record in enumerate(rows, 1)
        for column, text in enumerate(record, 1)
        if text
    }


@settings(deadline=None)
@given(
    records, st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
)
def test_what_was_written_is_read(rows: list[list[str]], ending: str, quoting: Any) -> None:
    anchors = [["id", "name", "amount"], ["1", "a", "2.5"], ["2", "b", "3.5"]]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=ending, quoting=quoting).writerows([*anchors * 5, *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        path.write_bytes(text.getvalue().encode())
        with open_workbook(path) as book:
            if book.delimiter == ",":
                assert read_both_ways(path) == _cells([*anchors * 5, *rows])


@pytest.mark.parametrize(
    ("encoding", "encoding_name"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
        ("cp1252", "cp1252"),
    ],
)
def test_the_encoding_is_found(tmp_path: Path, encoding: str, encoding_name: str) -> None:
    path = tmp_path / "text"
    path.write_bytes("Größe,Preis €\nzwölf,3\n".encode(encoding))
    with open_workbook(path) as book:
        assert book.encoding == encoding_name
        assert cells_of(book.sheets[0]) == {
            (1, 1): "Größe",
            (1, 2): "Preis €",
            (2, 1): "zwölf",
            (2, 2): "3",
        }


def test_bytes_that_windows_does_not_use_are_latin(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"caf\xe9,\x81\n")
    with open_workbook(path) as book:
        assert book.encoding == "latin-1"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    lines = [["name", "amount", "day"], ["Müller, A", "1.234,50", "2024-01-31"]]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows([*lines, *lines[1:] * 5])
    assert detect_delimiter(text.getvalue()) == delimiter


def test_prose_has_no_delimiter_but_the_usual_one() -> None:
    assert detect_delimiter("A note; it goes on.\nAnother one\nand more\nmore\nlast\n") == ","


@pytest.mark.parametrize(
    ("text", "expected", "plain"),
    [
        ("a,b\n\n\nc\n", {(1, 1): "a", (1, 2): "b", (4, 1): "c"}, True),
        ("a,b", {(1, 1): "a", (1, 2): "b"}, True),
        ("a,b\r", {(1, 1): "a", (1, 2): "b"}, True),
        ('a,"x\ny"\nc,d\n', {(1, 1): "a", (1, 2): "x\ny", (2, 1): "c", (2, 2): "d"}, True),
        ('a,"x\r\ny"\r\nc,d', {(1, 1): "a", (1, 2): "x\ny", (2, 1): "c", (2, 2): "d"}, True),
        ('a,"he said ""no"""\n', {(1, 1): "a", (1, 2): 'he said "no"'}, True),
        ('a,""\nb,c\n', {(1, 1): "a", (2, 1): "b", (2, 2): "c"}, True),
        ('5" pipe,x\n', {(1, 1): '5" pipe', (1, 2): "x"}, False),
        ('"a" ,x\n', {(1, 1): "a ", (1, 2): "x"}, False),
        ('a,"open\nb,c\n', {(1, 1): "a", (1, 2): "open\nb,c\n"}, False),
        ("a,b\rc,d\r", {(1, 1): "a", (1, 2): "b", (2, 1): "c", (2, 2): "d"}, False),
        ("a\0,b\n", {(1, 1): "a", (1, 2): "b"}, True),
        ("=1+1,@x\n", {(1, 1): "=1+1", (1, 2): "@x"}, True),
    ],
)
def test_quotes_and_line_ends_are_understood(
    tmp_path: Path, text: str, expected: Cells, plain: bool
) -> None:
    path = tmp_path / "text.csv"
    path.write_bytes(text.encode())
    assert read(path) == expected
    assert fast_path_reads(path) == plain


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_pieces_end_anywhere(tmp_path: Path, ending: str) -> None:
    rows = [[str(n), f'tëxt "{n}"' if n % 3 else "", f"a\n{n}"] for n in range(45_000)]
    path = tmp_path / "long.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator=ending).writerows(rows)
    assert path.stat().st_size > 1024 * 1024
    assert fast_path_reads(path)
    assert read(path) == _cells(rows)


def test_the_limits_hold(tmp_path: Path) -> None:
    path = tmp_path / "text.csv"
    path.write_text("a,b\n" * 100)
    with pytest.raises(TooLarge, match="cells_max"):
        read(path, ReadOptions(ReadLimits(cells_max=100)))
    with pytest.raises(TooLarge, match="file_bytes_max"):
        read(path, ReadOptions(ReadLimits(file_bytes_max=100)))
    path.write_text('a,"' + "b" * 3_000_000)
    with pytest.raises(TooLarge, match="row_bytes_max"):
        read(path, ReadOptions(ReadLimits(row_bytes_max=1_000_000)))
    path.write_text("," * 20_000)
    with pytest.raises(TooLarge, match="16384"):
        read(path)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.csv"
    path.write_bytes(b" \n\0\n")
    with pytest.raises(EmptyFile):
        read(path)
    path.write_bytes(bytes(range(1, 30)) * 100)
    with pytest.raises(UnknownFormat):
        read(path)
