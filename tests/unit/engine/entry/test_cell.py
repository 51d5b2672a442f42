"""The value of a cell is that of its entrypoint or its last expression, as JSON."""

import datetime
import decimal
import io
import json
import sys
from collections import OrderedDict, UserString, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.cell_outputs.values import DEPTH_MAX, REPR_CHARS_MAX, encode
from ade_engine.channel import Channel, ResultNotJson
from ade_engine.entry.cell import NoEntrypoint, cell_inputs, main


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Restore the `__main__` module that a cell replaces."""
    module = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = module


def run(source: str, entrypoint: str = "main", **parameters: Any) -> Any:
    """Run a cell as a job does."""
    inputs = cell_inputs(source, parameters, entrypoint)
    return main(inputs, Channel(io.StringIO()))


def test_the_last_expression_is_the_value() -> None:
    assert run("x = 2\nx * 3") == 6


def test_without_an_expression_there_is_no_value() -> None:
    assert run("x = 2") is None
    assert run("") is None


def test_an_entrypoint_is_called_with_the_parameters() -> None:
    assert run("def main(a, b=1): return [a, b]\n'not this'", a=5) == [5, 1]
    assert run("def work(a): return a", "work", a=5) == 5


def test_parameters_are_names_and_a_dictionary() -> None:
    assert run("[a, parameters['a']]", a=7) == [7, 7]


def test_a_name_that_is_not_callable_is_not_an_entrypoint() -> None:
    assert run("main = 5\n6") == 6


def test_classes_and_pickles_find_their_module() -> None:
    source = "import pickle\nclass A: pass\nisinstance(pickle.loads(pickle.dumps(A())), A)"
    assert run(source) is True


@dataclass
class _Point:
    x: int
    when: datetime.date


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (5, 5),
        ("a\0b", "a\0b"),
        (float("nan"), None),
        (float("inf"), None),
        ((1, [2]), [1, [2]]),
        ({1}, [1]),
        ({1: 2, None: 3}, {"1": 2, "None": 3}),
        (OrderedDict(a=1), {"a": 1}),
        (_Point(1, datetime.date(2020, 1, 2)), {"x": 1, "when": "2020-01-02"}),
        (datetime.time(1, 2), "01:02:00"),
        (numpy.int64(3), 3),
        (numpy.bool_(True), True),
        (numpy.array([[1.5, 2]]), [[1.5, 2.0]]),
        (polars.Series([1, None]), [1, None]),
        (b"x", {"repr": "b'x'"}),
        (decimal.Decimal("1.10"), {"repr": "Decimal('1.10')"}),
        (deque([1]), {"repr": "deque([1])"}),
        (UserString, {"repr": "<class 'collections.UserString'>"}),
    ],
)
def test_values_are_encoded_as_json(value: Any, written: Any) -> None:
    assert encode(value) == written
    json.dumps(encode(value), allow_nan=False)


def test_a_long_repr_is_cut() -> None:
    assert len(encode(b"x" * 1_000_000)["repr"]) == REPR_CHARS_MAX


def test_instances_of_subclasses_become_builtin_values() -> None:
    class Text(str):
        def __str__(self) -> str:
            return str.__str__(self)

    class Number(int):
        pass

    written = encode([Text("x"), Number(5)])
    assert [type(item) for item in written] == [str, int]


def test_a_cycle_or_deep_nesting_is_rejected() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ResultNotJson):
        encode(cycle)
    deep: Any = 1
    for _ in range(DEPTH_MAX + 2):
        deep = [deep]
    with pytest.raises(ResultNotJson):
        encode(deep)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(plain)
def test_json_values_are_unchanged(value: Any) -> None:
    assert encode(value) == value


def test_an_entrypoint_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NoEntrypoint, match="defines helper"):
        run("def helper(): pass", "start")


def test_a_script_with_a_guard_has_the_value_of_its_last_expression() -> None:
    assert run("def main(): return 5\nif __name__ == '__main__':\n    main() + 1") == 6
