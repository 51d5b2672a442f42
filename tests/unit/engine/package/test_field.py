"""A field takes only number formats that spreadsheet programs can read."""

import pytest

from ade_engine.package.author_errors import Misuse
from ade_engine.package.field import Field


@pytest.mark.parametrize(
    "code",
    [
        "0.00",
        "#,##0.00 €",
        "dd.mm.yyyy hh:mm",
        '0 "kg"',
        "[Red]-0.0%;0.0%",
        "#,##0.00\\ [$EUR]",
        "@",
    ],
)
def test_number_formats_are_taken(code: str) -> None:
    assert Field(format=code).format == code


@pytest.mark.parametrize("code", ['0 "kg', "[Red", "no format", "0" * 256, "0\x00", 5])
def test_what_would_damage_a_workbook_is_refused(code: object) -> None:
    with pytest.raises(Misuse, match="number format"):
        Field(format=code)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["eur", "EURO", "€", 5])
def test_a_currency_is_a_code_of_three_letters(code: object) -> None:
    with pytest.raises(Misuse, match="three capital letters"):
        Field(currency=code)  # type: ignore[arg-type]


def test_a_format_and_a_currency_exclude_each_other() -> None:
    with pytest.raises(Misuse, match="not both"):
        Field(format="0.00", currency="EUR")
