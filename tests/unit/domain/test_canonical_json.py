"""Canonical JSON: one text for one value, and the same as the plain way to make it."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.errors import InvalidRequest
from ade.domain.keys import canonical_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | TEXT
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


def plainly(value: Any) -> Any:
    """Replace every float that is a whole number by that number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: plainly(item) for key, item in value.items()}
    return [plainly(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_it_is_the_sorted_compact_spelling_with_numbers_by_value(value: Any) -> None:
    encoded = json.dumps(plainly(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(value) == encoded.encode()


@given(VALUES)
def test_it_says_the_same_value(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@pytest.mark.parametrize("text", ["1.0", ":1.0,", "[1e+5", '"-1.5', "e-", "1.", ",2e-07]"])
def test_texts_that_look_like_numbers_stay_as_they_are(text: str) -> None:
    assert json.loads(canonical_json([text, {text: 2.0}])) == [text, {text: 2}]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(number: float) -> None:
    with pytest.raises(InvalidRequest, match="NaN"):
        canonical_json({"deep": [number]})


def test_what_is_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidRequest, match="too deeply"):
        canonical_json(endless)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        canonical_json("\ud800")
