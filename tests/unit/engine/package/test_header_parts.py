"""The unit of a header is set apart from its name."""

import pytest

from ade_engine.package.header_parts import HeaderParts, header_parts


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("Amount", HeaderParts("Amount")),
        ("Amount (EUR)", HeaderParts("Amount", "EUR")),
        ("Amount [€]", HeaderParts("Amount", "€")),
        ("Amount in USD", HeaderParts("Amount", "USD")),
        ("Amount, USD", HeaderParts("Amount", "USD")),
        ("Amount EUR", HeaderParts("Amount", "EUR")),
        ("Weight (kg)", HeaderParts("Weight", "kg")),
        ("Weight / kg", HeaderParts("Weight", "kg")),
        ("Discount %", HeaderParts("Discount", "%")),
        ("Amount (TEUR)", HeaderParts("Amount", "EUR", 1_000)),
        ("Revenue (in thousands)", HeaderParts("Revenue", None, 1_000)),
        ("Revenue (Mio EUR)", HeaderParts("Revenue", "EUR", 1_000_000)),
        ("Name (first)", HeaderParts("Name", remark=True)),
        ("Amount (net) (EUR)", HeaderParts("Amount", "EUR", remark=True)),
        ("(EUR)", HeaderParts("(EUR)")),
        ("EUR", HeaderParts("EUR")),
        ("Date of birth", HeaderParts("Date of birth")),
        ("Check-in", HeaderParts("Check-in")),
        ("Sign in date", HeaderParts("Sign in date")),
        ("THE END", HeaderParts("THE END")),
        ("", HeaderParts("")),
    ],
)
def test_the_parts_of_a_header(header: str, parts: HeaderParts) -> None:
    assert header_parts(header) == parts
