"""However an entry ends, the channel reports it."""

import io
import json
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from ade_engine.channel import Channel
from ade_engine.run_entry import run_entry

Run = Callable[[Callable[[dict[str, Any], Channel], Any]], tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a function as an entry; return the exit status and the messages."""

    def run(entry: Callable[[dict[str, Any], Channel], Any]) -> tuple[int, list[dict[str, Any]]]:
        module = types.ModuleType("an_entry")
        module.main = entry  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "an_entry", module)
        stream = io.StringIO()
        status = run_entry("an_entry", {"value": 5}, stream)
        return status, [json.loads(line) for line in stream.getvalue().splitlines()]

    return run


def _raising(error: BaseException) -> Callable[[dict[str, Any], Channel], Any]:
    def entry(inputs: dict[str, Any], channel: Channel) -> Any:
        raise error

    return entry


def test_a_value_is_the_result(run: Run) -> None:
    assert run(lambda inputs, channel: inputs["value"]) == (0, [{"result": 5}])


def test_progress_comes_before_the_result(run: Run) -> None:
    def entry(inputs: dict[str, Any], channel: Channel) -> int:
        channel.progress(1, 2, "half")
        return 1

    progress = {"progress": {"done": 1, "total": 2, "message": "half"}}
    assert run(entry) == (0, [progress, {"result": 1}])


@pytest.mark.parametrize(
    ("code", "exit_code", "message"),
    [(0, 0, None), (3, 3, None), (None, 0, None), ("words", 1, "words"), (["a"], 1, "['a']")],
)
def test_an_exit_is_not_a_result(run: Run, code: Any, exit_code: int, message: str | None) -> None:
    status, (said,) = run(_raising(SystemExit(code)))
    assert status == 1
    assert said == {"failure": {"exit": exit_code, "exit_message": message}}


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), GeneratorExit()])
def test_an_exception_is_described(run: Run, error: BaseException) -> None:
    status, (said,) = run(_raising(error))
    assert status == 1
    assert said["failure"]["type"] == type(error).__name__


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), 10**5000], ids=type)
def test_a_result_that_is_not_json_is_reported(run: Run, value: Any) -> None:
    status, (said,) = run(lambda inputs, channel: value)
    assert status == 1
    assert "cannot be written as JSON" in said["failure"]["result_not_json"]


def test_a_closed_stdout_does_not_matter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    monkeypatch.setattr(sys, "stderr", None)
    assert run(lambda inputs, channel: 1) == (0, [{"result": 1}])


def test_a_missing_entry_module_is_described() -> None:
    stream = io.StringIO()
    assert run_entry("no_such_entry", {}, stream) == 1
    assert json.loads(stream.getvalue())["failure"]["module"] == "no_such_entry"
