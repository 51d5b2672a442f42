"""What cells look like to the eye."""

import numpy as np
import pytest

from ade_engine.tables.signs import Sign, looks_like_year, number_of_text, sign_of_text


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("", Sign.NOTHING),
        ("  ", Sign.NOTHING),
        ("Name", Sign.WORDS),
        ("1st floor", Sign.WORDS),
        ("M-2021-10001", Sign.WORDS),
        ("12", Sign.NUMBER),
        ("-1,234.50", Sign.NUMBER),
        ("1.234,50", Sign.NUMBER),
        ("(1,234)", Sign.NUMBER),
        ("$ 12.5", Sign.NUMBER),
        ("12 %", Sign.NUMBER),
        ("1e-5", Sign.NUMBER),
        ("2019", Sign.YEAR),
        ("2019/20", Sign.YEAR),
        ("2019-05-31", Sign.DATE),
        ("31.05.2019", Sign.DATE),
        ("5 May 2019", Sign.DATE),
        ("May-19", Sign.DATE),
        ("12:30", Sign.DATE),
        ("-", Sign.MARK),
        ("n/a", Sign.MARK),
        ("..", Sign.MARK),
        ("Not available", Sign.MARK),
        ("9" * 60, Sign.WORDS),
    ],
)
def test_a_text_looks_like(text: str, sign: Sign) -> None:
    assert sign_of_text(text) is sign


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
