"""Keys: equal work has the same key however its JSON is written, and any change gives another."""

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ade.domain.errors import InvalidRequest
from ade.domain.keys import Work, canonical_json, digest, fingerprint

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


def shuffled(value: Any, random: Any) -> Any:
    """Say the same with the members of every object in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, random)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(item, random) for item in value]
    return value


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_members_means_nothing(value: Any, random: Any) -> None:
    assert digest(shuffled(value, random)) == digest(value)


@given(VALUES, st.sampled_from([None, 0, 2, 7]), st.booleans())
def test_white_space_and_escapes_mean_nothing(
    value: Any, indent: int | None, ensure_ascii: bool
) -> None:
    encoded = json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)
    assert digest(json.loads(encoded)) == digest(value)


@given(st.integers(-(2**53), 2**53))
def test_the_spelling_of_a_whole_number_means_nothing(number: int) -> None:
    spellings = [str(number), f"{number}.0", f"{number}.000", f"{number}e0", f"{number * 10}E-1"]
    if abs(number) < 2**49:
        assert len({digest(json.loads(spelling)) for spelling in spellings}) == 1
    assert len({digest(json.loads(spelling)) for spelling in spellings[:4]}) == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_spelling_of_a_fraction_means_nothing(number: float) -> None:
    assert digest(json.loads(f"{number!r}")) == digest(json.loads(f"{number:.17e}"))


def test_zero_is_zero() -> None:
    assert len({digest(json.loads(text)) for text in ("0", "-0", "0.0", "-0.0", "0e9")}) == 1


def execution_key(*, job_type: str, output_spec: Any = None, env_version: str, **own: Any) -> str:
    """Name one piece of work by all of its parts at once."""
    return Work(job_type, output_spec, env_version).key(**own)


def without_floats(value: Any) -> bool:
    """Tell whether a value holds no number that is written as a float."""
    if isinstance(value, dict):
        return all(map(without_floats, value.values()))
    if isinstance(value, list):
        return all(map(without_floats, value))
    return not isinstance(value, float)


@given(st.none() | st.text(st.characters(exclude_categories=["Cs"])), VALUES, VALUES)
def test_a_key_is_the_digest_of_its_parts(revision: str | None, inputs: Any, spec: Any) -> None:
    assume(without_floats(inputs))
    parts = {
        "job_type": "echo",
        "document_revision_id": revision,
        "target_object_ids": ["a"] if revision else [],
        "inputs": inputs,
        "output_spec": spec,
        "env_version": "1",
    }
    assert execution_key(**parts) == digest(parts)


@given(VALUES, VALUES)
def test_any_change_is_another_key(one: Any, other: Any) -> None:
    assume(not same(one, other))
    assert digest(one) != digest(other)


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are one: numbers by value, but never true and 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return (type(one) is type(other) and bool(one == other)) or _both_numbers(one, other)


def _both_numbers(one: Any, other: Any) -> bool:
    return isinstance(one, int | float) and isinstance(other, int | float) and one == other


@given(VALUES)
def test_canonical_json_is_json_of_the_same_value(value: Any) -> None:
    written = canonical_json(value)
    assert same(json.loads(written), value)
    assert canonical_json(json.loads(written)) == written


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {"a": [math.nan]}, "\ud800"])
def test_what_json_has_no_word_for_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        canonical_json(value)


def test_a_nest_that_is_too_deep_is_refused() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{"a": object()}, {"a": {1, 2}}, b"bytes"])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="that JSON does not have"):
        canonical_json(value)


WORK: dict[str, Any] = {
    "job_type": "object_execute",
    "document_revision_id": "r1",
    "target_object_ids": ["o1", "o2"],
    "inputs": {"x": 1},
    "env_version": "py@1",
}


@pytest.mark.parametrize(
    "change",
    [
        {"job_type": "object_render"},
        {"document_revision_id": "r2"},
        {"document_revision_id": None},
        {"target_object_ids": ["o2", "o1"]},
        {"target_object_ids": ["o1"]},
        {"inputs": {"x": 2}},
        {"inputs": {"y": 1}},
        {"output_spec": {"formats": ["png"]}},
        {"env_version": "py@2"},
    ],
)
def test_work_is_named_by_all_that_its_result_depends_on(change: dict[str, Any]) -> None:
    assert execution_key(**WORK | change) != execution_key(**WORK)
    assert execution_key(**WORK | change) == execution_key(**WORK | change)


@given(st.integers(-(2**53), 2**53))
def test_an_int_and_a_float_are_different_work(number: int) -> None:
    """Code sees the type of a number, so `2` must not be answered with the result of `2.0`."""
    keys = [
        execution_key(**WORK | {"inputs": {"x": json.loads(text)}})
        for text in (f"{number}", f"{number}.0", f"{number}.000", f"{number}e0")
    ]
    assert keys[0] != keys[1]
    assert len(set(keys[1:])) == 1


@pytest.mark.parametrize("part", ["content_digest", "engine_version", "interpreter"])
def test_a_build_is_named_by_all_that_its_environment_depends_on(part: str) -> None:
    parts = {"content_digest": "sha256:1", "engine_version": "1", "interpreter": "3.11"}
    assert fingerprint(**parts) != fingerprint(**parts | {part: "other"})


def test_keys_are_the_same_on_every_machine() -> None:
    """Written down: a change here makes every stored key of every user worthless."""
    encoded = '{"a":null,"b":[1,2.5,"ü"]}'.encode()
    assert canonical_json({"b": [1.0, 2.5, "ü"], "a": None}) == encoded
    assert digest({"b": [1.0, 2.5, "ü"], "a": None}) == (
        f"sha256:{hashlib.sha256(encoded).hexdigest()}"
    )
