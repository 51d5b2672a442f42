"""The configurations of experiments: what is found in them, and what is refused."""

import string
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ade.app.experiment_config import (
    DEPTH_MAX,
    NAME_CHARS_MAX,
    ExperimentNames,
    read_names,
    write_config,
)
from ade.domain.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "experiment", "run"),
    [
        ("experiment_name: a\nrun_name: b\n", "a", "b"),
        ("metadata: {experiment_name: a, run_name: b}", "a", "b"),
        ("experiment: {name: a, run_name: 7}", "a", "7"),
        ("experiment: a\n", None, None),
        ("metadata: [1]\nrun_name: {}\nexperiment_name: ' '\n", None, None),
        ("a: &x {b: *x2}\n".replace("*x2", "1"), None, None),
        ("{}", None, None),
    ],
)
def test_names_are_found_where_they_may_be(
    text: str, experiment: str | None, run: str | None
) -> None:
    assert read_names(text) == ExperimentNames(experiment, run)


def test_a_name_is_cut_to_what_can_be_kept() -> None:
    names = read_names(f"run_name: {'x' * 1000}")
    assert names.run_name == "x" * NAME_CHARS_MAX


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "just text",
        "a: [1",
        "a: b\n---\nc: d",
        "a: &a [*a]",
        "{[1]: 2}",
        "\0",
        "a: \ud800",
        "[" * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: " + "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
    ],
)
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^config: "):
        read_names(text)


def test_tags_do_nothing() -> None:
    assert read_names("run_name: !!python/object/apply:os.system ['true']").run_name is None
    assert read_names("a: !!python/name:os.system ''\nrun_name: b").run_name == "b"


@given(st.text(alphabet=string.printable + "é\u2028\x85", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_names(text)
    except InvalidRequest:
        return


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=9), _VALUES, max_size=5))
def test_what_is_written_is_read_as_it_was(config: dict[str, Any]) -> None:
    assert yaml.safe_load(write_config(config)) == config
