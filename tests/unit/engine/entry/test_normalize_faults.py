"""A failure of the engine is reported by its type and location, never by its message."""

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.pipeline.workbooks import Ran, run

from ade_engine.errors import EngineError
from ade_engine.pipeline import run_pipeline

NAME = {"columns__name": "FIELD = Field()"}
ROWS = [["Name", "Amount"], ["a", 1], ["b", 2], ["c", 3]]


@pytest.mark.parametrize(
    ("raised", "category", "code"),
    [
        (ValueError("secret"), "INTERNAL_ERROR", "engine_fault"),
        (MemoryError("secret"), "RESOURCE_LIMIT", "out_of_memory"),
        (OSError(errno.ENOSPC, "secret"), "RESOURCE_LIMIT", "output_not_written"),
        (OSError(errno.ENOENT, "secret"), "INTERNAL_ERROR", "engine_fault"),
        (BaseException("secret"), "INTERNAL_ERROR", "engine_fault"),
    ],
)
def test_a_fault_has_a_code_and_no_message_of_its_cause(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    category: str,
    code: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr(run_pipeline, "process_table", fail)
    with pytest.raises(EngineError) as failed:
        run(tmp_path, ROWS, **NAME)
    error = Ran(tmp_path / "out", {}).artifact["error"]
    assert (error["category"], error["code"]) == (category, code)
    assert "secret" not in str(error) + str(failed.value)
    assert failed.value.__cause__ is failed.value.__context__ is None
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "artifact.json",
        "events.ndjson",
    }


def test_the_place_of_a_fault_is_in_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pipeline, "lay_out_tables", None)
    with pytest.raises(EngineError, match=r"pipeline/run_pipeline\.py:\d+"):
        run(tmp_path, ROWS, **NAME)


def test_a_key_pressed_to_end_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_pipeline, "process_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, ROWS, **NAME)
    assert not list((tmp_path / "out").glob("*.xlsx*"))
