"""The engine as a job: what `main` sends on its channel holds no value."""

import io
import json
from pathlib import Path
from typing import Any

from tests.unit.engine.package.packages import write_package

from ade_engine.run_entry import run_entry

NAME = "FIELD = Field(label='Name')\n"


def run(folder: Path, code: str) -> list[dict[str, Any]]:
    """Run the entry and return the messages that it sent."""
    package = write_package(folder / "config", columns__name=NAME + code)
    source = folder / "input.csv"
    source.write_text("Name,Amount\nsecret1,1\nsecret2,2\nsecret3,3\n")
    line = io.StringIO()
    inputs = {
        "input": str(source),
        "config": str(package),
        "output": str(folder),
        "job_id": "j1",
        "headers": False,
    }
    run_entry("ade_engine.entry.normalize", inputs, line)
    assert "secret" not in line.getvalue()
    return [json.loads(said) for said in line.getvalue().splitlines()]


def test_progress_and_the_summary_are_sent(tmp_path: Path) -> None:
    *before, last = run(tmp_path, "")
    progress = [message["progress"] for message in before if "progress" in message]
    assert progress[-1]["done"] == 3
    steps = [message["step"] for message in before if "step" in message]
    assert steps[-2:] == ["output.written", "run.finished"]
    assert last["result"]["evaluation"] == "complete"
    artifact = json.loads((tmp_path / "artifact.json").read_text())
    assert artifact["job_id"] == "j1"
    assert "header" not in artifact["events"][1]["columns"][0]["raw"]


def test_an_exception_of_the_package_is_sent_without_its_message(tmp_path: Path) -> None:
    said = run(tmp_path, "def transform(value):\n    raise ValueError(value)")[-1]["failure"]
    assert "columns/name.py:3" in said["message"]
    assert said["type"].endswith("AuthorError")


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    said = run(tmp_path, "def transform(value):\n    import no_such_module_here")[-1]["failure"]
    assert said["module"] == "no_such_module_here"
    assert "ModuleNotFoundError" in said["bases"]
