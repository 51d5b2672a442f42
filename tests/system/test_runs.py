"""Runs on a real server: from a template and a document to a workbook and its record."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import eventually, is_alive, jobs_of
from tests.system.runs import (
    BASE,
    RUNS,
    SAMPLE,
    configured,
    edited,
    ended,
    expected,
    job_of,
    output,
    ran,
    shown,
    started,
    succeeded,
    uploaded,
)
from tests.system.server import JOBS, SHORT_LEASE, Server, Start, mirrored, starting

NAME = "columns/full_name.py"
FIELD = "from ade_engine import Field\n\nFIELD = Field(label='Name', required=True)\n\n\n"
ASLEEP = FIELD + "def transform(value):\n    import time\n\n    time.sleep(600)\n"
BUSY = (
    "import time\n"
    + FIELD
    + "def transform_column(column):\n    while time.process_time() < 1.5:\n"
    "        pass\n    return column\n"
)


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start the processes that the tests of this module share."""
    folder = tmp_path_factory.mktemp("runs")
    with starting(folder, ADE_LOG_LEVEL="warning", ADE_QUEUE_SIZE=0) as start:
        yield start


@pytest.fixture(scope="module")
def server(start_shared: Start) -> Server:
    """Serve for all tests of this module."""
    return start_shared.server()


def activation(server: Server, configuration_id: str, sequence: int = 1) -> dict[str, object]:
    """Read what came of making a version ready."""
    path = f"{BASE}/configurations/{configuration_id}/versions/{sequence}/activation"
    return dict(server.http.get(path).json())


# --- what comes of it -----------------------------------------------------------------------------


def test_a_run_writes_what_the_engine_alone_writes(
    server: Server, start_shared: Start, tmp_path: Path
) -> None:
    configuration_id, document_id = configured(server), uploaded(server)
    run = succeeded(server, configuration_id, document_id)
    assert output(server, run, tmp_path) == expected(tmp_path)
    assert run["created_at"] <= run["started_at"] <= run["finished_at"]
    assert run["build"]["status"] == "ready"
    assert activation(server, configuration_id)["status"] == "ready"

    answer = server.http.get(run["links"]["artifact"])
    assert answer.headers["content-type"] == "application/json"
    artifact = answer.json()
    assert artifact["status"] == "succeeded"
    assert artifact["job_id"] == run["run_id"]
    assert artifact["input"]["name"] == "roster.csv"
    assert artifact["summary"]["rows_written"] == 6
    assert artifact["configuration"] == {
        "configuration_id": configuration_id,
        "sequence": run["version"]["sequence"],
        "digest": run["version"]["digest"],
    }

    answer = server.http.get(run["links"]["output"])
    assert answer.headers["content-type"].endswith("spreadsheetml.sheet")
    assert 'filename="normalized.xlsx"' in answer.headers["content-disposition"]

    assert server.http.get(run["links"]["logs"]).text == "members written: 6\n"
    result = server.result(job_of(run))
    assert result["outputs"]["result_json"]["summary"] == artifact["summary"]
    job = server.job(job_of(run))
    assert {"landlock", "seccomp"} <= set(job["isolation"])
    assert job["resource_usage"]["cpu_ms"] > 0


def test_other_formats_are_artifacts(server: Server, tmp_path: Path) -> None:
    configuration_id, document_id = configured(server), uploaded(server)
    run = succeeded(server, configuration_id, document_id, outputs=["csv", "parquet", "jsonl"])
    output = server.http.get(run["links"]["output"])
    assert output.text.startswith("member_id,")
    assert 'filename="normalized.csv"' in output.headers["content-disposition"]
    artifacts = server.http.get(f"{JOBS}/{run['run_id']}/artifacts").json()
    names = {one["name"] for one in artifacts} - {"artifact.json", "engine-events.ndjson"}
    assert names == {
        "normalized.csv",
        "normalized.parquet",
        "normalized.jsonl",
        "normalized.schema.json",
        "issues.csv",
    }
    (written,) = (one for one in artifacts if one["name"] == "normalized.csv")
    assert written["size_bytes"] > 300
    again = server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json={
        "input_document_id": document_id, "outputs": ["pdf"],
    })  # fmt: skip
    assert again.status_code == 422


def test_a_runs_folder_holds_all_that_it_was_and_left(server: Server, start_shared: Start) -> None:
    configuration_id = configured(server)
    document_id = uploaded(server, name="../odd/ro ster?.csv")
    run = succeeded(server, configuration_id, document_id)
    folder = start_shared.data_dir / "jobs" / run["run_id"]
    (document,) = (folder / "inputs").iterdir()
    assert document.name.startswith("01-ro ster")
    assert document.read_bytes() == SAMPLE.read_bytes()
    files = server.http.get(f"{BASE}/configurations/{configuration_id}/files").json()["items"]
    package = {path.relative_to(folder / "config").as_posix() for path in _files(folder / "config")}
    assert package == {file["path"] for file in files}
    request = json.loads((folder / "run-request.json").read_text())
    assert request["inputs"]["document_id"] == document_id
    artifact = json.loads((folder / "artifact.json").read_text())
    assert artifact == server.http.get(run["links"]["artifact"]).json()
    assert (folder / "normalized.xlsx").read_bytes()[:2] == b"PK"
    assert (folder / "logs.txt").read_text() == "members written: 6\n"
    said = mirrored(folder, len(server.log(job_of(run))))
    assert [event["event"] for event in said] == server.log(job_of(run))
    assert set(said[-1]["event"].split(".")) == {"job", "succeeded"}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_run_tells_how_many_rows_it_has_done(server: Server) -> None:
    header, *rows = SAMPLE.read_text().splitlines()[3:]
    content = "\n".join([header, *rows * 500]).encode()
    run = succeeded(server, configured(server), uploaded(server, content))
    reported = [
        event for event in server.events(job_of(run)) if event["event"] == "worker.progress"
    ]
    progress = run["progress"]
    assert reported
    assert progress["done"] == progress["total"] == 3000
    assert progress["message"]


def test_the_short_form_and_running_again_give_the_same(server: Server, tmp_path: Path) -> None:
    configuration_id, document_id = configured(server), uploaded(server)
    answer = server.http.post(f"{BASE}/configurations/{configuration_id}/versions")
    version = answer.json()["config_version_id"]
    edited(server, configuration_id, NAME, "raise SystemError")  # of no account for the version
    body = {"config_version_id": version, "document_ids": [document_id]}
    answer = server.http.post(JOBS, json=body)
    assert answer.status_code == 202, answer.text
    run = ended(server, {"run_id": answer.json()["job_id"]})
    assert run["status"] == "succeeded", run["error"]
    again = server.http.post(f"{RUNS}/{run['run_id']}/rerun").json()
    retried = server.http.post(f"{JOBS}/{run['run_id']}/retry").json()
    for other in (ended(server, again), ended(server, {"run_id": retried["job_id"]})):
        assert (other["status"], other["rerun_of"]) == ("succeeded", run["run_id"])
        assert output(server, other, tmp_path) == expected(tmp_path)


def test_header_texts_stay_out_of_the_record_if_configured(start: Start) -> None:
    server = start.server(ADE_ARTIFACT_HEADERS="false")
    content = SAMPLE.read_bytes().replace(b"Locker", b"Shelfmark")
    run = succeeded(server, configured(server), uploaded(server, content))
    folder = start.data_dir / "jobs" / run["run_id"]
    records = ("artifact.json", "engine-events.ndjson", "events.ndjson")
    assert not [name for name in records if "Shelfmark" in (folder / name).read_text()]
    assert "Shelfmark" not in json.dumps(server.result(job_of(run)))


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("book.xlsx", b"PK\x03\x04 no archive", "DAMAGED_FILE"),
        ("nothing.csv", b"", "EMPTY_FILE"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "UNKNOWN_FORMAT"),
    ],
    ids=["damaged", "empty", "picture"],
)
def test_a_document_that_cannot_be_read_is_said(
    server: Server, name: str, content: bytes, code: str
) -> None:
    run = ran(server, configured(server), uploaded(server, content, name))
    assert run["status"] == "failed"
    assert run["error"]["category"] == "VALIDATION_ERROR"
    assert run["error"]["code"] == code
    assert server.http.get(run["links"]["output"]).status_code == 404


def test_a_failed_build_fails_the_run_and_is_remembered(server: Server) -> None:
    configuration_id, document_id = configured(server), uploaded(server)
    edited(server, configuration_id, "hooks/on_activate.py", "def on_activate():\n    pass\n")
    edited(server, configuration_id, NAME, "from ade_engine import Field\n\nFIELD = Field(\n")
    first = ran(server, configuration_id, document_id)
    assert (first["status"], first["build"]["status"]) == ("failed", "failed")
    assert (first["error"]["category"], first["error"]["code"]) == (
        "DEPENDENCY_ERROR",
        "BUILD_FAILED",
    )
    assert first["error"]["message"].startswith("build failed: ")
    assert f"{NAME}:3" in first["error"]["message"]
    reported = activation(server, configuration_id)
    assert (reported["status"], reported["packages"]) == ("failed", [])
    assert reported["diagnostics"]
    job_id = _build(server, first)["job_id"]
    body = {"input_document_id": document_id}  # as it was: it would fail again
    answer = server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    assert answer.status_code == 200  # it has ended
    second = answer.json()
    assert (second["status"], second["build_id"]) == ("failed", first["build_id"])
    assert second["error"] == first["error"]
    assert _build(server, first)["job_id"] == job_id
    again = server.http.post(f"{RUNS}/{first['run_id']}/rerun").json()  # on demand it is tried
    assert ended(server, again)["status"] == "failed"
    assert _build(server, first)["job_id"] != job_id
    edited(server, configuration_id, NAME, FIELD)
    third = succeeded(server, configuration_id, document_id)
    assert third["build_id"] != first["build_id"]


def _build(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    """Read the build of a run."""
    return dict(server.http.get(f"{BASE}/builds/{run['build_id']}").json())


# --- while it runs --------------------------------------------------------------------------------


def test_what_is_changed_after_the_start_does_not_change_a_run(
    start: Start, tmp_path: Path
) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1)
    asleep = configured(server, {NAME: ASLEEP})
    configuration_id, document_id = configured(server), uploaded(server)
    sleeper = started(server, asleep, document_id)
    (process,) = eventually(lambda: _running(server, sleeper))
    waiting = started(server, configuration_id, document_id)
    edited(server, configuration_id, NAME, "raise SystemError")
    assert server.http.delete(f"{BASE}/documents/{document_id}").status_code == 204
    unwanted = started(server, configuration_id, uploaded(server))
    answer = server.http.post(f"{RUNS}/{unwanted['run_id']}/cancel")
    assert answer.json()["status"] == "cancelled"
    assert shown(server, waiting)["status"] == "queued"

    server.http.post(f"{RUNS}/{sleeper['run_id']}/cancel")
    assert ended(server, sleeper)["status"] == "cancelled"
    eventually(lambda: not is_alive(process))
    assert server.http.get(sleeper["links"]["output"]).status_code == 404

    done = ended(server, waiting)
    assert done["status"] == "succeeded", done["error"]
    assert output(server, done, tmp_path) == expected(tmp_path)
    assert shown(server, unwanted)["started_at"] is None


def _running(server: Server, run: dict[str, object]) -> set[int]:
    """Return the processes of jobs, once a run is under way."""
    return jobs_of(server.pid) if shown(server, run)["status"] == "running" else set()


def test_a_killed_server_leaves_no_run_stuck(start: Start, tmp_path: Path) -> None:
    server = start.server(**SHORT_LEASE, ADE_MAX_CONCURRENCY="1")  # so that the second one waits
    document_id = uploaded(server)
    busy = configured(server, {NAME: BUSY})
    cut_off = started(server, busy, document_id)
    eventually(lambda: _running(server, cut_off))
    waiting = started(server, configured(server), document_id)
    server.kill()

    guarded = start.server(**SHORT_LEASE, ADE_SAFE_MODE="true")
    assert shown(guarded, waiting)["status"] == "queued"
    body = {"input_document_id": document_id}
    answer = guarded.http.post(f"{BASE}/configurations/{busy}/runs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "safe_mode")
    guarded.stop()

    again = start.server(**SHORT_LEASE)
    first, second = ended(again, cut_off), ended(again, waiting)
    assert (first["status"], second["status"]) == ("succeeded", "succeeded"), first["error"]
    assert again.job(job_of(cut_off))["attempt"] == 2
    assert output(again, second, tmp_path) == expected(tmp_path)
