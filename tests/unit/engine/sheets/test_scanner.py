"""The fast reader and the slow reader return the same cells."""

import datetime as dt
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from tests.unit.engine.sheets.workbook_files import Cells, read_both_ways

from ade_engine.sheets.byte_words import (
    PADDING,
    index_of,
    whole_numbers,
    word,
    words_from_each_byte,
)
from ade_engine.sheets.coordinates import a1

characters = st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t")
texts = st.text(characters, min_size=1, max_size=40).filter(lambda text: not text.startswith("="))
numbers = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(-1e300, 1e300).map(lambda x: float(f"{x:.15g}")),
)
values = st.one_of(texts, numbers, st.booleans(), st.dates(dt.date(1900, 3, 1)))
places = st.tuples(st.integers(1, 300), st.one_of(st.integers(1, 30), st.integers(1, 16_384)))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(places, values, max_size=40))
def test_random_cells_are_read_as_they_were_written(cells: Cells) -> None:
    book = Workbook()
    for (row, column), value in cells.items():
        book.active[a1(row, column)] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.xlsx"
        book.save(path)
        assert read_both_ways(path) == cells


@given(st.lists(st.binary(max_size=8), min_size=1))
def test_words_hold_numbers_where_bytes_are_digits(pieces: list[bytes]) -> None:
    _check_numbers(pieces)


@given(st.lists(st.integers(0, 10**8 - 1).map(lambda number: str(number).encode()), min_size=1))
def test_digits_are_read_as_numbers(pieces: list[bytes]) -> None:
    _check_numbers(pieces)


def _check_numbers(pieces: list[bytes]) -> None:
    buffer = b"".join(piece.ljust(8, b"x") for piece in pieces) + PADDING
    words = words_from_each_byte(buffer)[np.arange(len(pieces)) * 8]
    found, valid = whole_numbers(words, np.array([len(piece) for piece in pieces]))
    for piece, number, is_number in zip(pieces, found.tolist(), valid.tolist(), strict=True):
        assert is_number == (piece.isdigit() and piece.isascii())
        if is_number:
            assert number == int(piece)


@given(st.binary(max_size=8), st.binary(min_size=1, max_size=1))
def test_a_byte_is_found_in_a_word(piece: bytes, byte: bytes) -> None:
    padded = piece.ljust(8, b"\1" if byte == b"\0" else b"\0")
    found = index_of(np.array([word(padded)]), byte)
    at = padded.find(byte)
    assert found.tolist() == [at if at >= 0 else 8]
