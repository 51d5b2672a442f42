"""The artifact is derived from the events and fits its schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.unit.engine.pipeline.workbooks import Ran, run

from ade_engine import record
from ade_engine.entry.normalize import NormalizeRequest, headers_are_recorded, normalize
from ade_engine.errors import EngineError
from ade_engine.record.artifact import artifact_of

SCHEMA = Path(record.__file__).with_name("artifact.schema.json")
NAME = "FIELD = Field(label='Name', type='text', required=True)\n"
ROWS = [["Name", "Amount", None], ["Ada", 1, "x"], ["Ben", 2, "y"], [None, "three", "z"]]


def package(**more: str) -> dict[str, str]:
    return {"columns__name": NAME, "columns__amount": "FIELD = Field(type='number')", **more}


def check(artifact: dict[str, Any]) -> None:
    jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).validate(artifact)


def events(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ran.folder / "events.ndjson").read_text().splitlines()]


def test_a_run_gives_an_artifact_that_fits(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, **package())
    check(ran.artifact)
    assert ran.artifact["job_id"] == "job-1"
    assert [event["stage"] for event in ran.artifact["events"]] == [
        "structure",
        "mapping",
        "transform",
        "validate",
        "output",
    ]


def test_the_version_that_a_server_ran_is_recorded(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, **package())
    assert "configuration" not in ran.artifact
    version = {"configuration_id": "c", "sequence": 7, "digest": "sha256:d"}
    missing, again = tmp_path / "missing.xlsx", tmp_path / "again"
    request = NormalizeRequest(missing, tmp_path / "config", again, configuration=version)
    with pytest.raises(EngineError):  # the file is not there: a run that fails records it, too
        normalize(request)
    artifact = Ran(again, {}).artifact
    check(artifact)
    assert artifact["configuration"] == version


@pytest.mark.parametrize(
    "broken",
    [
        {"columns__name": NAME + "def transform(value): 1 / 0"},
        {"columns__name": "import nothing_like_this\n" + NAME},
        {"columns__name": NAME + "def transform(vlaue): 1"},
    ],
)
def test_a_run_that_fails_gives_one_too(tmp_path: Path, broken: dict[str, str]) -> None:
    with pytest.raises(EngineError):
        run(tmp_path, ROWS, **package(**broken))
    artifact = Ran(tmp_path / "out", {}).artifact
    check(artifact)
    assert artifact["error"]["message"]


def test_the_artifact_is_nothing_but_its_events(tmp_path: Path) -> None:
    ran = run(tmp_path, ROWS, **package())
    assert artifact_of(events(ran)) == ran.artifact
    assert [event["seq"] for event in events(ran)] == list(range(1, len(events(ran)) + 1))


def test_it_says_what_became_of_each_column(tmp_path: Path) -> None:
    (mapping,) = run(tmp_path, ROWS, **package()).stage("mapping")
    first, second, third = mapping["columns"]
    assert first["raw"] == {"col": "col_1", "column": "A", "header": "Name"}
    assert first["contributors"] == [{"rule": "col.name.synonym", "delta": 1.0}]
    assert (first["target"], first["range"], first["reason"]) == ("name", "A2:A4", None)
    assert second["score"] > first["score"]
    assert (third["target"], third["reason"]) == (None, "empty_header")


def test_ranges_are_runs_and_only_the_first_hundred_are_kept(tmp_path: Path) -> None:
    text = NAME + "def validate(value): return 'odd' if int(value) % 2 else None"
    rows = [["Name", "Amount"], *([str(n), n] for n in range(500))]
    (issue,) = run(tmp_path, rows, columns__name=text).stage("validate")[0]["issues"]
    assert issue["count"] == 250
    assert issue["ranges"][:2] == ["A3", "A5"]
    assert (len(issue["ranges"]), issue["ranges_omitted"]) == (100, 150)


def test_the_schema_refuses_what_does_not_belong(tmp_path: Path) -> None:
    artifact = run(tmp_path, ROWS, **package()).artifact
    artifact["events"][1]["columns"][0]["value"] = "x"
    with pytest.raises(jsonschema_rs.ValidationError):
        check(artifact)


@pytest.mark.parametrize(("value", "recorded"), [("off", False), ("OFF", False), ("on", True)])
def test_headers_are_recorded_unless_switched_off(value: str, recorded: bool) -> None:
    assert headers_are_recorded({"ADE_ARTIFACT_HEADERS": value}) is recorded
    assert headers_are_recorded({})
