"""A check reports everything that is wrong with a package, as the server returns it."""

import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from ade_engine.channel import Channel
from ade_engine.entry.check import main
from ade_engine.examples import FOLDER, example_names


def check(folder: Path) -> dict[str, Any]:
    """Check a package."""
    found: dict[str, Any] = main({"config": str(folder)}, Channel(io.StringIO()))
    return found


@pytest.mark.parametrize("name", example_names())
def test_the_examples_are_valid(name: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / name, tmp_path / "config")
    found = check(tmp_path / "config")
    assert found["valid"], found["problems"]
    assert {one["field"] for one in found["fields"]} == {
        file.stem
        for file in (FOLDER / name / "columns").glob("*.py")
        if not file.stem.startswith("_")
    }


def test_problems_name_their_places(tmp_path: Path) -> None:
    (tmp_path / "columns").mkdir()
    (tmp_path / "columns" / "a.py").write_text("FIELD = Field(label='A', colour='red')\n")
    (tmp_path / "columns" / "b.py").write_text("FIELD = Field(\n")
    found = check(tmp_path)
    assert not found["valid"]
    places = {(one["file"], one["line"], one["severity"]) for one in found["problems"]}
    assert ("columns/a.py", 1, "error") in places
    assert any(file == "columns/b.py" for file, _, _ in places)


def test_a_package_without_files_has_a_problem(tmp_path: Path) -> None:
    found = check(tmp_path / "nothing")
    assert [one["code"] for one in found["problems"]] == ["no_fields"]
