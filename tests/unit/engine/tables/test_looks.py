"""Cells are classified by how they look."""

import numpy as np
import pytest

from ade_engine.tables.looks import CellLook, look_of_text, looks_like_year, number_of_text


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("", CellLook.NOTHING),
        ("  ", CellLook.NOTHING),
        ("Name", CellLook.WORDS),
        ("1st floor", CellLook.WORDS),
        ("M-2021-10001", CellLook.WORDS),
        ("12", CellLook.NUMBER),
        ("-1,234.50", CellLook.NUMBER),
        ("1.234,50", CellLook.NUMBER),
        ("(1,234)", CellLook.NUMBER),
        ("$ 12.5", CellLook.NUMBER),
        ("12 %", CellLook.NUMBER),
        ("1e-5", CellLook.NUMBER),
        ("2019", CellLook.YEAR),
        ("2019/20", CellLook.YEAR),
        ("2019-05-31", CellLook.DATE),
        ("31.05.2019", CellLook.DATE),
        ("5 May 2019", CellLook.DATE),
        ("May-19", CellLook.DATE),
        ("12:30", CellLook.DATE),
        ("-", CellLook.MARK),
        ("n/a", CellLook.MARK),
        ("..", CellLook.MARK),
        ("Not available", CellLook.MARK),
        ("9" * 60, CellLook.WORDS),
    ],
)
def test_a_text_looks_like(text: str, sign: CellLook) -> None:
    assert look_of_text(text) is sign


def test_numbers_are_read_at_a_glance() -> None:
    assert number_of_text("$1,234.5") == 1234.5
    assert np.isnan(number_of_text("none"))
    assert looks_like_year(np.array([1899, 1900, 2024, 2024.5, np.nan])).tolist() == [
        False,
        True,
        True,
        False,
        False,
    ]
