"""Output of real jobs: seen before they end, kept however they end, told apart by attempt."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.processes import eventually
from tests.system.cells import begin
from tests.system.runs import configured, ended, job_of, started, uploaded
from tests.system.server import JOBS, SHORT_LEASE, Server, Start

SSE = {"Accept": "text/event-stream"}
# It prints on both streams, leaves a file, and then does not end by itself.
LINGERING = """
import pathlib, sys, time
print("begun")
print("a warning", file=sys.stderr)
pathlib.Path("artifacts/left.txt").write_text("kept")
print("written")
time.sleep(600)
"""


class Log:
    """Follow the log of a job."""

    def __init__(self, stream: httpx.Response) -> None:
        self._lines = stream.iter_lines()
        self.pieces: list[dict[str, Any]] = []

    def until(self, text: str) -> dict[str, Any]:
        """Wait for a piece with this text."""
        for line in self._lines:
            if line.startswith("data: "):
                self.pieces.append(json.loads(line.removeprefix("data: ")))
                if text in self.pieces[-1]["text"]:
                    return self.pieces[-1]
        raise AssertionError(f"the stream ended without {text!r}: {self.pieces}")

    def ends(self) -> bool:
        """Wait for the end of the stream."""
        for line in self._lines:
            if line.startswith("data: "):
                self.pieces.append(json.loads(line.removeprefix("data: ")))
        return True

    def parts(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what came of a build, and what followed it."""
        of_build = [piece for piece in self.pieces if piece["id"].startswith("build:")]
        assert self.pieces[: len(of_build)] == of_build
        return of_build, self.pieces[len(of_build) :]


@contextlib.contextmanager
def following(server: Server, job: dict[str, Any], after: str = "0") -> Iterator[Log]:
    """Follow the log of a job while inside."""
    headers = {**SSE, "Last-Event-ID": after}
    with server.http.stream("GET", job["links"]["logs"], headers=headers, timeout=90) as stream:
        yield Log(stream)


def pieces(server: Server, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the log of a job so far."""
    answer = server.http.get(job["links"]["logs"], params={"after": "0"})
    return [json.loads(line) for line in answer.text.splitlines()]


def texts(server: Server, job: dict[str, Any]) -> dict[str, str]:
    """Read what the newest attempt wrote to each stream."""
    found = {}
    for stream in ("stdout", "stderr"):
        found[stream] = server.http.get(job["links"]["logs"], params={"stream": stream}).text
    return found


def files(server: Server, job: dict[str, Any]) -> dict[str, str]:
    """Read the files that a job left."""
    kept = server.http.get(f"{JOBS}/{job['job_id']}/artifacts").json()
    return {
        one["name"]: server.http.get(f"/api/v1/artifacts/{one['artifact_id']}/content").text
        for one in kept
    }


PRINTED = {"stdout": "begun\nwritten\n", "stderr": "a warning\n"}


@pytest.mark.parametrize(("act", "status"), [("cancel", "cancelled"), ("interrupt", "paused")])
@pytest.mark.parametrize("sandbox", ["", "none"])
def test_a_stopped_job_was_followed_and_keeps_output_and_files(
    start: Start, act: str, status: str, sandbox: str
) -> None:
    server = start.server(**({"ADE_SANDBOX": sandbox} if sandbox else {}))
    job = begin(server, LINGERING)
    with following(server, job) as log:
        log.until("written")  # long before the job ends by itself
        assert server.job(job)["status"] == "running"
        assert server.http.post(f"{JOBS}/{job['job_id']}/{act}").status_code in (200, 202)
        found = server.wait(job, lambda found: found["status"] == status)
        assert found["error"] is None
        if status == "cancelled":
            assert log.ends()
    assert texts(server, job) == PRINTED
    assert files(server, job) == {"left.txt": "kept"}
    assert [piece["seq"] for piece in pieces(server, job)] == list(
        range(1, len(pieces(server, job)) + 1)
    )
    if status == "paused":
        server.http.post(f"{JOBS}/{job['job_id']}/cancel")
        assert server.job(job)["status"] == "cancelled"
        assert texts(server, job) == PRINTED
        assert files(server, job) == {"left.txt": "kept"}


def test_a_timed_out_job_keeps_output_and_files(start: Start) -> None:
    server = start.server()
    job = begin(server, LINGERING, limits={"timeout_ms": 2000})
    assert server.ended_job(job)["status"] == "timed_out"
    assert texts(server, job) == PRINTED
    assert files(server, job) == {"left.txt": "kept"}


def test_output_of_a_worker_that_was_killed_stays_and_the_next_attempt_follows(
    start: Start,
) -> None:
    server = start.server(**SHORT_LEASE)
    job = begin(server, LINGERING)
    with following(server, job) as log:
        last = log.until("written")
    server.kill()
    again = start.server(**SHORT_LEASE)
    first = again.http.get(job["links"]["logs"], params={"attempt": 1}).text
    assert first == PRINTED["stdout"]
    with following(again, job, after=last["id"]) as log:
        second = log.until("written")
        assert second["attempt"] == 2
    told = [piece["attempt"] for piece in pieces(again, job)]
    assert told == sorted(told)
    assert set(told) == {1, 2}


@pytest.mark.postgresql
def test_a_server_shows_what_a_worker_with_another_folder_writes(
    start_on_postgres: Start,
) -> None:
    server = start_on_postgres.server(ADE_MAX_CONCURRENCY=1)
    blocking = begin(server, LINGERING)
    with following(server, blocking) as log:
        log.until("written")
    elsewhere = start_on_postgres.folder / "elsewhere"
    start_on_postgres.worker(ADE_STORAGE_DATA_DIR=elsewhere)
    job = begin(server, LINGERING)
    with following(server, job) as log:
        log.until("written")
        assert server.job(job)["status"] == "running"
    assert texts(server, job) == PRINTED
    assert not (start_on_postgres.data_dir / "jobs" / job["job_id"] / "logs.txt").exists()


def test_a_job_that_prints_much_costs_few_transactions(start: Start) -> None:
    server = start.server()
    job = begin(server, "for n in range(40_000):\n    print(n, 'x' * 20)")
    assert server.ended_job(job)["status"] == "succeeded"
    kept = "".join(piece["text"] for piece in pieces(server, job))
    assert kept.startswith("0 xxx")
    assert kept.endswith("39999 xxxxxxxxxxxxxxxxxxxx\n")
    assert 2 * 256 * 1024 <= len(kept) <= 2 * 256 * 1024 + 32 * 1024
    text = server.http.get(job["links"]["logs"]).text
    assert "[output cut: " in text


def test_open_logs_do_not_hold_up_the_end(start: Start) -> None:
    server = start.server(ADE_DRAIN_GRACE_SECONDS=0)
    job = begin(server, LINGERING)
    with following(server, job) as log:
        log.until("written")
        assert server.stop(15) == 0
    again = start.server()
    eventually(lambda: any(piece["attempt"] == 2 for piece in pieces(again, job)))


HOOK = """
def on_activate():
    print("from the hook")
"""


def test_the_log_of_a_run_tells_the_whole_story(start: Start) -> None:
    server = start.server()
    configuration_id = configured(server, {"hooks/on_activate.py": HOOK})
    run = started(server, configuration_id, uploaded(server))
    with following(server, {"links": {"logs": f"{JOBS}/{run['run_id']}/logs"}}) as log:
        assert log.ends()
    assert ended(server, run)["status"] == "succeeded"
    build, own = log.parts()
    assert "from the hook\n" in "".join(piece["text"] for piece in build)
    assert "running on_activate\n" in [piece["text"] for piece in build]
    assert {piece["job_id"] for piece in own} == {run["run_id"]}
    steps = "".join(piece["text"] for piece in own if piece["stream"] == "step").splitlines()
    assert sorted(steps[:3], reverse=True) == ["run.started", "reading", "package.loaded"]
    passes = [step for step in steps if step.partition(" ")[0].count(".")]
    assert passes[-3:] == ["table.written table 1 rows 6", "output.written", "run.finished"]
    assert "on_job_end" in steps
    # It is resumed in either part.
    for place in (build[0]["id"], own[0]["id"]):
        with following(
            server, {"links": {"logs": f"{JOBS}/{run['run_id']}/logs"}}, after=place
        ) as rest:
            rest.ends()
        known = [piece["id"] for piece in log.pieces]
        assert [piece["id"] for piece in rest.pieces] == known[known.index(place) + 1 :]
    causes = [event["data"].get("cause") for event in server.events(job_of(run))]
    assert causes[:2] == ["accepted", "build_ready"]
    steps = server.events(job_of(run))[1]["data"]["build"]["steps"]
    assert steps[-1] == "running on_activate"
    timeline = server.http.get(f"{JOBS}/{run['run_id']}/timeline").text.splitlines()
    told = [json.loads(line) for line in timeline]
    changes = [one["event"] for one in told if one["event"].startswith("job.")]
    assert changes == ["job.queued", "job.queued", "job.started", "job.succeeded"]
    wrote = [one["job_id"] for one in told if one["event"].startswith("output.")]
    assert wrote == [piece["job_id"] for piece in log.pieces]
    ready = [one["event"] for one in told].index("job.queued", 1)
    assert {one["job_id"] for one in told[1:ready]} == {build[0]["job_id"]}
    # A run that finds the build ready does not repeat its log.
    second = started(server, configuration_id, uploaded(server, b"a,b\n1,2\n", "other.csv"))
    ended(server, second)
    answer = server.http.get(f"{JOBS}/{second['run_id']}/logs", params={"after": "0"})
    assert {json.loads(line)["job_id"] for line in answer.text.splitlines()} == {second["run_id"]}
