"""A server is killed: what it had accepted is not lost, what it ran does not run beside itself."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
from tests.processes import eventually, is_alive, jobs_of
from tests.system.server import JOBS, Server, Start, echo, long_echo, mirrored


def test_what_was_accepted_runs_after_a_crash(start: Start) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1, ADE_RETRY_MAX_ATTEMPTS=1)
    server.running_job(server.submit(**long_echo(600)))  # the only slot is taken
    answer = server.http.post(JOBS, json=echo(value="kept"))
    server.kill()
    assert answer.status_code == 202
    job = answer.json()
    again = start.server(ADE_MAX_CONCURRENCY=1)
    found = again.ended_job(job)
    assert (found["status"], found["attempt"]) == ("succeeded", 1)
    assert again.result(job)["outputs"]["result_json"] == "kept"
    assert again.log(job) == ["job.queued", "job.started", "job.succeeded"]


def test_a_crash_in_a_storm_of_submissions_loses_nothing(start: Start) -> None:
    """Killed in the middle: every 202 runs to its end, once recorded; every other left no row."""
    server = start.server(ADE_QUEUE_SIZE=0, ADE_RETRY_MAX_ATTEMPTS=10)
    accepted: list[str] = []

    def submit(n: int) -> None:
        try:
            answer = httpx.post(
                server.url + JOBS, json=echo(value=n), headers=server.http.headers, timeout=10
            )
        except httpx.HTTPError:
            return  # nothing was promised
        assert answer.status_code == 202, answer.text
        accepted.append(answer.json()["job_id"])
        if len(accepted) == 30:
            server.kill()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(submit, range(60)))
    assert len(accepted) >= 30
    again = start.server(ADE_QUEUE_SIZE=0, ADE_MAX_CONCURRENCY=4)
    jobs = again.http.get(JOBS, params={"limit": 200}).json()["items"]
    assert {job["job_id"] for job in jobs} >= set(accepted)
    for job in jobs:
        assert again.ended_job(job)["status"] == "succeeded"
        assert again.log(job).count("job.succeeded") == 1


def _crash_while_running(server: Server, seconds: float) -> dict[str, object]:
    job = server.submit(**long_echo(seconds))
    server.running_job(job)
    (child,) = jobs_of(server.pid)
    server.kill()
    eventually(lambda: not is_alive(child), 5)  # it does not outlive who started it
    return job


def test_what_was_running_runs_again_after_its_lease(start: Start) -> None:
    job = _crash_while_running(start.server(), 1.5)
    again = start.server()
    found = again.ended_job(job)
    assert (found["status"], found["attempt"]) == ("succeeded", 2)
    words = [word for word in again.log(job) if word.startswith("job.")]
    assert words == ["job.queued", "job.started", "job.lost", "job.started", "job.succeeded"]


def test_a_start_does_not_sweep_blindly(start: Start) -> None:
    """A running job whose lease is alive belongs to someone, for all that anyone can know."""
    job = _crash_while_running(start.server(ADE_LEASE_SECONDS=300), 600)
    again = start.server()
    later = again.submit(value=1)
    assert again.ended_job(later)["status"] == "succeeded"
    eventually(lambda: _sweeps(again))
    found = again.job(job)
    assert (found["status"], found["attempt"]) == ("running", 1)


def _sweeps(server: Server) -> bool:
    parts = server.http.get("/api/v1/health").json()["components"]
    return any(part["name"] == "sweeper" and part["status"] == "ok" for part in parts)


def test_what_may_not_run_again_fails_after_its_lease(start: Start) -> None:
    job = _crash_while_running(start.server(ADE_RETRY_MAX_ATTEMPTS=1), 600)
    again = start.server()
    found = again.ended_job(job)
    assert (found["status"], found["attempt"]) == ("failed", 1)
    assert (found["error"]["category"], found["error"]["code"]) == ("INTERNAL_ERROR", "LEASE_LOST")
    assert jobs_of(again.pid) == set()


def test_a_cancel_that_was_asked_for_is_done_after_a_crash(start: Start) -> None:
    server = start.server()
    job = server.submit(**long_echo(600))
    server.running_job(job)
    (child,) = jobs_of(server.pid)
    os.kill(child, signal.SIGSTOP)  # so that it does not hear that it shall stop
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    server.kill()
    again = start.server()
    found = again.ended_job(job)
    assert (found["status"], found["attempt"]) == ("cancelled", 1)


def _is_at(attempt: int, job: dict[str, Any]) -> bool:
    return bool(job["attempt"] == attempt and job["progress"])


def test_crash_after_crash_the_attempts_are_counted(start: Start) -> None:
    server = start.server(ADE_RETRY_MAX_ATTEMPTS=2)
    job = server.submit(**long_echo(600))
    for attempt in (1, 2):
        server.wait(job, partial(_is_at, attempt))
        server.kill()
        server = start.server()
    found = server.ended_job(job)
    assert (found["status"], found["attempt"]) == ("failed", 2)
    assert found["error"]["code"] == "LEASE_LOST"


def test_an_event_file_that_a_crash_left_short_is_completed(start: Start) -> None:
    server = start.server()
    job = server.submit(value="short")
    server.ended_job(job)
    folder = start.data_dir / "jobs" / job["job_id"]
    whole = mirrored(folder, 3)
    server.kill()
    # As if it had died after the commit of the last event, with a line half written.
    file = folder / "events.ndjson"
    file.write_bytes(file.read_bytes()[:-20])
    again = start.server()
    assert mirrored(folder, 3) == whole
    assert again.stop() == 0
