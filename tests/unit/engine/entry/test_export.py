"""The job as a whole: its artifacts, its result and its progress reports."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.export.exported import drawn, image, text

from ade_engine.channel import Channel
from ade_engine.entry import export
from ade_engine.run_entry import run_entry

pytestmark = pytest.mark.usefixtures("job_folder")


def messages(inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the job as a child does; return the lines that it sent."""
    stream = io.StringIO()
    run_entry("ade_engine.entry.export", inputs, stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def inputs(*objects: dict[str, Any], formats: list[str]) -> dict[str, Any]:
    """Return the inputs that the kind prepares."""
    return {
        "formats": formats,
        "view_mode": "document",
        "include_speaker_notes": False,
        "document": {"objects": list(objects)},
    }


@pytest.mark.parametrize("formats", [["pdf"], ["html"], ["pdf", "html"]])
def test_each_format_is_written_and_declared(formats: list[str]) -> None:
    lines = messages(inputs(text("a"), formats=formats))
    names = [f"document.{name}" for name in formats]
    assert sorted(path.name for path in Path("artifacts").iterdir()) == sorted(names)
    declared = [line["artifact"] for line in lines if "artifact" in line]
    assert [one["name"] for one in declared] == names
    assert [one["metadata"] for one in declared if one["name"] == "document.pdf"] == [
        {"pages": 1}
    ] * ("pdf" in formats)
    assert lines[-1]["result"] == {
        "formats": formats,
        "view_mode": "document",
        "pages": 1 if "pdf" in formats else None,
        "warnings": [],
    }


def test_progress_is_reported_and_never_decreases() -> None:
    many = " ".join(f"${number}$" for number in range(120))
    lines = messages(inputs(text(many), formats=["pdf", "html"]))
    steps = [line["progress"] for line in lines if "progress" in line]
    done = [step["done"] for step in steps]
    assert done == sorted(done)
    assert len(done) > 5
    assert steps[-1]["done"] == steps[-1]["total"]
    assert any("formula" in step["message"] for step in steps)


def test_an_input_image_is_used_and_a_damaged_one_fails_the_job() -> None:
    Path("inputs").mkdir()
    Path("inputs/good").write_bytes(drawn(9, 9))
    Path("inputs/bad").write_bytes(b"GIF89a")
    good = image(b"") | {"content": {"file": "inputs/good"}}
    bad = image(b"") | {"content": {"file": "inputs/bad"}, "object_id": "b"}
    export.main(inputs(good, formats=["pdf", "html"]), Channel(io.StringIO()))
    [failed] = [
        line["failure"] for line in messages(inputs(bad, formats=["pdf"])) if "failure" in line
    ]
    assert failed["declared"] == {
        "category": "VALIDATION_ERROR",
        "code": "BAD_IMAGE",
        "message": "The image is truncated or damaged (object b).",
        "details": {"object_id": "b"},
    }
