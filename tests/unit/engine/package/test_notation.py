"""Columns of dates and numbers that were written in one way are read as they were written."""

import datetime as dt

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ade_engine.package.column import Column
from ade_engine.package.notation import (
    DateEvidence,
    DecimalEvidence,
    NotationOfCells,
    Preference,
    allow_both_orders,
    allow_both_signs,
)
from ade_engine.sheets.cells import CellArray

DAYS = st.dates(dt.date(1900, 1, 1), dt.date(2150, 12, 31))
ORDERS = {
    True: "{d.day:0{z}}{s}{d.month:0{z}}{s}{d.year}",
    False: "{d.month:0{z}}{s}{d.day:0{z}}{s}{d.year}",
}
CENTS = st.integers(-(10**11), 10**11)


def written_dates(days: list[dt.date], day_first: bool, separator: str, digits: int) -> list[str]:
    return [ORDERS[day_first].format(d=day, s=separator, z=digits) for day in days]


def written_number(cents: int, decimal: str, group: str, places: int) -> str:
    sign, cents = "-" if cents < 0 else "", abs(cents)
    whole = f"{cents // 100:,}".replace(",", group)
    return f"{sign}{whole}{decimal}{cents % 100:02}"[: None if places else -3]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(DAYS, min_size=1, max_size=30),
    st.booleans(),
    st.sampled_from("-/"),
    st.sampled_from([1, 2]),
)
def test_dates_of_one_order_are_right_or_doubtful(
    days: list[dt.date], day_first: bool, separator: str, digits: int
) -> None:
    column = Column(written_dates(days, day_first, separator, digits))
    evidence = DateEvidence()
    evidence.add(column.cells)
    if evidence.is_doubtful:
        assert all(day.day <= 12 for day in days)
    else:
        assert column.as_date().values == days
    told = Column(column.cells, day_first=day_first)
    assert told.as_date().values == days


@settings(max_examples=200, deadline=None)
@given(
    st.lists(CENTS, min_size=1, max_size=30),
    st.sampled_from([(".", ","), (",", "."), (".", "'"), (",", " "), (",", "\u00a0"), (".", "")]),
    st.booleans(),
)
def test_numbers_of_one_notation_are_right_or_doubtful(
    numbers: list[int], signs: tuple[str, str], places: bool
) -> None:
    texts = [written_number(cents, *signs, places) for cents in numbers]
    right = [cents / 100 if places else np.copysign(abs(cents) // 100, cents) for cents in numbers]
    column = Column(texts)
    evidence = DecimalEvidence()
    evidence.add(column.cells)
    if not evidence.is_doubtful:
        assert column.as_number().values == right
    told = Column(column.cells, decimal=signs[0])
    assert told.as_number().values == right


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["1,5", "1.5", "1,234", "1.234", "12", "x", ""]), max_size=20))
def test_evidence_of_chunks_adds_up_to_that_of_the_column(texts: list[str]) -> None:
    whole, parts = DecimalEvidence(), DecimalEvidence()
    whole.add(CellArray.of(texts))
    for text in texts:
        parts.add(CellArray.of([text]))
    nobody = Preference()
    assert whole.decimal(nobody) == parts.decimal(nobody)
    assert whole.is_doubtful == parts.is_doubtful


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=10))
def test_any_text_can_be_asked(texts: list[str]) -> None:
    cells = CellArray.of(texts)
    notation = NotationOfCells(cells)
    assert notation.decimal in (".", ",")
    assert notation.day_first in (True, False)
    assert len(allow_both_orders(cells.text)) == len(allow_both_signs(cells.text)) == len(texts)
