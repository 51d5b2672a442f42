"""Identifiers: UUIDs of version 7 that sort by their time."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.clock import ManualClock, new_id
from ade.domain.ids import is_uuid, uuid7

TIMES = st.integers(0, (1 << 48) * 1000 - 1)
ENTROPY = st.integers(0, (1 << 62) - 1)


@given(TIMES, ENTROPY)
def test_it_is_a_uuid_of_version_7(at_us: int, entropy: int) -> None:
    made = UUID(uuid7(at_us, entropy))
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == at_us // 1000
    assert made.int & ((1 << 62) - 1) == entropy


@given(TIMES, TIMES, ENTROPY, ENTROPY)
def test_later_sorts_after_earlier(one: int, other: int, first: int, second: int) -> None:
    if one != other:
        assert (uuid7(one, first) < uuid7(other, second)) == (one < other)
        assert (UUID(uuid7(one, first)) < UUID(uuid7(other, second))) == (one < other)


@given(TIMES, ENTROPY, ENTROPY)
def test_entropy_tells_those_of_one_moment_apart(at_us: int, first: int, second: int) -> None:
    assert (uuid7(at_us, first) == uuid7(at_us, second)) == (first == second)


def test_a_clock_makes_identifiers_in_its_order() -> None:
    clock = ManualClock()
    made = []
    for _ in range(100):
        clock.advance(0.000001)
        made.append(new_id(clock))
    assert made == sorted(made)
    assert len(set(made)) == 100


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("0198a000-0000-7000-8000-000000000001", True),
        ("0198A000-0000-7000-8000-00000000000F", True),
        ("0198a00000007000800000000000000f", False),
        ("{0198a000-0000-7000-8000-000000000001}", False),
        ("urn:uuid:0198a000-0000-7000-8000-000000000001", False),
        ("", False),
        ("not a uuid", False),
    ],
)
def test_the_usual_spelling(text: str, usual: bool) -> None:
    assert is_uuid(text) == usual
