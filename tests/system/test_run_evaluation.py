"""Runs on a real server say how usable their result is, and fail where `fail_on` says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.runs import RUNS, configured, job_of, output, ran, started, uploaded
from tests.system.server import Server, starting

# The template requires a member number and a name.
NO_COLUMN = b"Colour,Size\nred,1\nblue,2\n"
ONE_ERROR = b"Member No.,Full name\nRC100001,Ada\nno number,Lin\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module."""
    folder = tmp_path_factory.mktemp("evaluations")
    with starting(folder, ADE_LOG_LEVEL="warning", ADE_QUEUE_SIZE=0) as start:
        yield start.server()


def test_a_run_says_how_usable_its_result_is(server: Server) -> None:
    run = ran(server, configured(server), uploaded(server))
    assert (run["status"], run["evaluation"]) == ("succeeded", "complete")
    assert run["counts"]["tables"] == run["counts"]["tables_written"] == 1
    assert run["counts"]["rows"] == 6
    assert run["waiting"] is None
    job = server.job(job_of(run))
    assert (job["evaluation"], job["counts"]) == (run["evaluation"], run["counts"])


def test_an_unusable_result_is_a_failure_that_keeps_its_files(
    server: Server, tmp_path: Path
) -> None:
    run = ran(server, configured(server), uploaded(server, NO_COLUMN))
    assert (run["status"], run["evaluation"]) == ("failed", "unusable")
    assert run["error"]["code"] == "EVALUATION_FAILED"
    assert run["error"]["category"] == "VALIDATION_ERROR"
    assert run["counts"]["rows"] == 0
    assert output(server, run, tmp_path)
    artifact = server.http.get(run["links"]["artifact"]).json()
    assert artifact["evaluation"] == "unusable"
    listed = server.http.get(RUNS, params={"evaluation": "unusable"}).json()["items"]
    assert run["run_id"] in [one["run_id"] for one in listed]


def test_the_run_decides_what_is_a_failure(server: Server) -> None:
    configuration_id, document_id = configured(server), uploaded(server, NO_COLUMN)
    run = ran(server, configuration_id, document_id, fail_on="never")
    assert (run["status"], run["evaluation"], run["error"]) == ("succeeded", "unusable", None)
    again = server.http.post(f"{RUNS}/{run['run_id']}/rerun").json()
    assert server.ended_job(job_of(again))["status"] == "succeeded"
    body = {"input_document_id": document_id, "fail_on": "sometimes"}
    path = run["links"]["self"].replace(f"runs/{run['run_id']}", "")
    answer = server.http.post(f"{path}configurations/{configuration_id}/runs", json=body)
    assert answer.status_code == 422


def test_the_package_decides_unless_the_run_does(server: Server) -> None:
    strict = configured(server, {"config.toml": '[run]\nfail_on = "errors"\n'})
    document_id = uploaded(server, ONE_ERROR)
    run = ran(server, strict, document_id)
    assert run["counts"]["issues"]["error"] >= 1
    assert (run["status"], run["error"]["code"]) == ("failed", "EVALUATION_FAILED")
    run = ran(server, strict, document_id, fail_on="unusable")
    assert run["status"] == "succeeded"


def test_files_are_a_conflict_until_the_run_has_ended(server: Server) -> None:
    configuration_id = configured(
        server,
        {"hooks/on_job_start.py": "def on_job_start():\n    import time\n    time.sleep(600)\n"},
    )
    run = started(server, configuration_id, uploaded(server))
    answer = server.http.get(run["links"]["output"])
    assert (answer.status_code, answer.json()["code"]) == (409, "not_finished")
    server.http.post(f"{RUNS}/{run['run_id']}/cancel")
