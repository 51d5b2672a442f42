"""The description of an exception is bounded, whatever its own methods do."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.describe_exception import MESSAGE_CHARS_MAX, TRACEBACK_CHARS_MAX, describe

CELL = "cell.py"
WORDS_BYTES_MAX = 40_000


def _caught(source: str) -> BaseException:
    """Run a cell that raises, and return what it raised."""
    try:
        exec(compile(source, CELL, "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_position_is_in_the_code_of_the_job() -> None:
    facts = describe(_caught("def f(x):\n    return 1 +  x['a']\nf({})"))
    assert facts["type"] == "KeyError"
    assert (facts["file"], facts["line"], facts["function"]) == (CELL, 2, "f")
    assert facts["column"] == 17


def test_the_position_is_not_in_a_library() -> None:
    facts = describe(_caught("import json\n\njson.loads('{')"))
    assert (facts["file"], facts["line"]) == (CELL, 3)


def test_a_syntax_error_has_its_own_position() -> None:
    facts = describe(_caught("compile('x = = 1', 'mine.py', 'exec')"))
    assert (facts["file"], facts["line"], facts["column"]) == ("mine.py", 1, 5)


def test_what_is_needed_to_classify_an_exception() -> None:
    facts = describe(_caught("open('/no/such/position')"))
    assert facts["errno"] == 2
    assert "OSError" in facts["bases"]
    assert describe(_caught("import no_such_module"))["module"] == "no_such_module"


def test_frames_of_the_engine_are_not_in_the_traceback() -> None:
    facts = describe(_caught("raise ValueError('x')"))
    assert "ValueError: x" in facts["traceback"]


def test_a_long_message_is_cut() -> None:
    facts = describe(ValueError("x" * 10_000_000))
    assert len(facts["message"]) == MESSAGE_CHARS_MAX
    assert len(facts["traceback"]) <= TRACEBACK_CHARS_MAX + 100


def test_a_deep_recursion_is_cut() -> None:
    facts = describe(_caught("def f(): f()\nf()"))
    assert facts["type"] == "RecursionError"
    assert len(facts["traceback"]) <= TRACEBACK_CHARS_MAX + 100


def test_a_long_or_cyclic_chain_is_cut() -> None:
    first, last = ValueError("first"), ValueError("last")
    first.__cause__, last.__cause__ = last, first
    describe(first)
    error: BaseException = ValueError(0)
    for number in range(3000):
        following = ValueError(number)
        following.__context__ = error
        error = following
    assert len(describe(error)["traceback"]) <= TRACEBACK_CHARS_MAX + 100


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit

    __repr__ = __str__


class _OddClass(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ZeroDivisionError


class _OddErrno(OSError):
    @property
    def errno(self) -> Any:  # type: ignore[override]
        raise ZeroDivisionError


class _OddTraceback(Exception):
    __traceback__ = property(lambda self: 5)


def _odd_syntax_error() -> SyntaxError:
    error = SyntaxError("x")
    error.filename, error.lineno, error.offset = object(), object(), []  # type: ignore[assignment]
    return error


def _odd_names() -> BaseException:
    kind = type("E" * 100_000, (Exception,), {})
    kind.__module__ = object()  # type: ignore[assignment]
    return kind()


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "unspeakable": _Unspeakable,
    "odd class": _OddClass,
    "odd errno": _OddErrno,
    "errno that is an object": lambda: OSError(object(), "x"),
    "errno that is a list": lambda: OSError([1], "x"),
    "odd traceback": _OddTraceback,
    "module that is an object": lambda: ImportError("x", name=object()),  # type: ignore[arg-type]
    "odd syntax error": _odd_syntax_error,
    "odd names": _odd_names,
    "group": lambda: ExceptionGroup("many", [ValueError(n) for n in range(5000)]),
    "surrogates": lambda: ValueError("\ud800"),
    "long file": lambda: _caught_in("f" * 300_000),
}


def _caught_in(file: str) -> BaseException:
    try:
        exec(compile("1 / 0", file, "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError


CASES = [pytest.param(make, id=name) for name, make in HOSTILE.items()]


@pytest.mark.parametrize("make", CASES)
def test_a_hostile_exception_is_described_in_bounded_json(
    make: Callable[[], BaseException],
) -> None:
    facts = describe(make())
    assert isinstance(facts["type"], str)
    assert len(json.dumps(facts)) < WORDS_BYTES_MAX


@given(st.text())
def test_any_message_is_reported(message: str) -> None:
    assert describe(ValueError(message))["message"] == message[:MESSAGE_CHARS_MAX]
