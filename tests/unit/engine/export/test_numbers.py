"""Numbers in tables are written for people, and none of them changes its value."""

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.engine.export.exported import LAYOUT

from ade_engine.export.fonts import embedded_fonts, missing_glyphs
from ade_engine.export.numbers import MINUS, NARROW_SPACE, number_texts, plain_number
from ade_engine.export.pages import write_templates

POWER = f"{NARROW_SPACE}×{NARROW_SPACE}10"
NUMBERS = st.one_of(
    st.integers(-(10**18), 10**18), st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([22.200000000000003, 0.1], ["22.2", "0.1"]),
        ([1 / 3], ["0.333333"]),
        ([1.5, 2.25, 3.0], ["1.50", "2.25", "3.00"]),
        ([3.0, 4.0], ["3", "4"]),
        ([123456.78, 1234567.891], ["123,456.78", "1,234,567.89"]),
        ([0.000123, 1500.5], ["0.000123", "1500.50"]),
        ([1234.5, 12345.6], ["1,234.5", "12,345.6"]),
        ([-0.0, -5.5], ["0.0", f"{MINUS}5.5"]),
        ([1e300, 1.5, 2.5e-9], [f"1{POWER}³⁰⁰", "1.5", f"2.5{POWER}⁻⁹"]),
        ([7, 30_000, -5], ["7", "30,000", f"{MINUS}5"]),
        ([9_999, 10_000], ["9,999", "10,000"]),
        ([2024, 2025], ["2024", "2025"]),
        ([10_234, 10_235], ["10234", "10235"]),
        ([20_261_118], ["20261118"]),
        ([0.5, 100, None, "x", True], ["0.5", "100", None, None, None]),
        ([10**20, 1], ["100,000,000,000,000,000,000", "1"]),
    ],
)
def test_numbers_are_written_for_people(column: list[Any], shown: list[str | None]) -> None:
    assert number_texts(column, "en") == shown


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        ("en-GB", "1,234,567.5"),
        ("de", "1.234.567,5"),
        ("de-CH", "1’234’567.5"),
        ("fr", "1 234 567,5"),
        ("tlh", "1 234 567.5"),
    ],
)
def test_numbers_have_the_signs_of_the_language(language: str, shown: str) -> None:
    [text] = number_texts([1_234_567.5], language)
    assert text == shown.replace(" ", NARROW_SPACE)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
@example([10.0, 0.34375])
def test_a_written_number_has_its_value(column: list[int | float]) -> None:
    for value, text in zip(column, number_texts(column, "en"), strict=True):
        assert text is not None
        plain = text.replace(",", "").replace(MINUS, "-")
        mantissa, _, power = plain.partition(POWER)
        exponent = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        if isinstance(value, int):
            assert int(plain) == value
        else:
            read = float(f"{mantissa}e{exponent}") if power else float(plain)
            assert math.isclose(read, value, rel_tol=6e-5)


@given(st.lists(st.decimals(0, 10**12, places=2), min_size=1, max_size=8))
def test_no_cents_are_lost(amounts: list[Any]) -> None:
    texts = number_texts([float(amount) for amount in amounts], "en")
    assert [float((text or "").replace(",", "")) for text in texts] == [
        float(amount) for amount in amounts
    ]


@pytest.mark.parametrize(
    ("value", "shown"), [(1_234_567, "1234567"), (22.200000000000003, "22.2"), (-1e-9, "-1e-09")]
)
def test_plain_numbers_are_as_they_are(value: float, shown: str) -> None:
    assert plain_number(value) == shown


def test_the_embedded_fonts_have_every_sign_of_a_number() -> None:
    write_templates(LAYOUT)
    signs = {*"⁻⁰¹²³⁴⁵⁶⁷⁸⁹×’", MINUS}
    assert missing_glyphs(signs, LAYOUT, embedded_fonts()) == set()
