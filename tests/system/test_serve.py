"""`ade serve` as a user meets it: start, submit, watch, read, stop."""

import signal
import socket
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from tests.processes import eventually, jobs_of
from tests.system.server import JOBS, Start, echo, long_echo, mirrored

SAFE = {"ADE_SAFE_MODE": "true"}


def one_line(output: str) -> str:
    """Return what was said, which must be one line."""
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1, output
    assert lines[0].startswith("ade: ")
    return lines[0]


def test_submit_watch_read(start: Start) -> None:
    server = start.server()
    answer = server.http.post(JOBS, json=echo(**long_echo(0.3, value={"hello": "world"})))
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"{JOBS}/{job['job_id']}"

    seen = []
    asked = {"Accept": "text/event-stream"}
    with server.http.stream("GET", job["links"]["events"], headers=asked) as stream:
        for line in stream.iter_lines():  # it ends with the job
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
    assert seen[:2] == ["job.queued", "job.started"]
    assert seen[-1] == "job.succeeded"
    assert set(seen[2:-1]) == {"worker.progress"}

    result = server.http.get(job["links"]["result"]).json()
    assert result["status"] == "SUCCEEDED"
    assert result["outputs"]["result_json"] == {"hello": "world"}
    assert server.job(job)["attempt"] == 1
    folder = start.data_dir / "jobs" / job["job_id"]
    assert [line["event"] for line in mirrored(folder, len(seen))] == seen


def test_who_prefers_to_wait_gets_the_end(start: Start) -> None:
    server = start.server()
    answer = server.http.post(JOBS, json=echo(value=1), headers={"Prefer": "wait=20"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "succeeded"


def test_a_running_job_is_cancelled_at_once(start: Start) -> None:
    server = start.server(ADE_RENEW_SECONDS=10, ADE_LEASE_SECONDS=60)
    job = server.submit(**long_echo(600))
    server.running_job(job)
    (child,) = jobs_of(server.pid)
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job, 8)["status"] == "cancelled"
    eventually(lambda: child not in jobs_of(server.pid))


def test_the_first_start_shows_a_link_that_lets_in(start: Start) -> None:
    server = start.server(ADE_BOOTSTRAP_API_KEY="")
    key = server.said(r"first API key is not shown again: (ade_\S+)")[1]
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}) as client:
        assert client.get(JOBS).status_code == 200
    assert server.http.get(JOBS).status_code == 401
    token = server.said(r"\?token=(\S+)")[1]
    assert token != key
    for status in (303, 401):  # it works once
        with httpx.Client(base_url=server.url) as browser:
            assert browser.post("/login", data={"token": token}).status_code == status
            assert browser.get(JOBS).status_code == (200 if status == 303 else 401)
    server.stop()
    again = start.server(ADE_BOOTSTRAP_API_KEY="")
    assert "token=" not in again.output


def test_a_link_is_made_beside_the_running_server(start: Start) -> None:
    server = start.server()
    made = start.command("link", "--port", server.url.rpartition(":")[2].strip("/"))
    assert made.ended() == 0, made.output
    link = made.said(r"(http://127.0.0.1:\S+/\?token=adel_\w+)")[1]
    with httpx.Client() as browser:
        assert "signs this browser in once" in browser.get(link).text
        url, _, token = link.partition("?token=")
        assert browser.post(f"{url}login", data={"token": token}).status_code == 303
        assert browser.get(server.url.rstrip("/") + JOBS).status_code == 200


def test_the_demo_shows_where_the_results_are(start: Start) -> None:
    demo = start.command("demo", ADE_STORAGE_DATA_DIR="", ADE_BOOTSTRAP_API_KEY="")
    assert demo.ended(60) == 0, demo.output
    assert "member_id" in demo.output
    for name in ("normalized.xlsx", "artifact.json"):
        file = start.folder / demo.said(rf"{name} +(\S+)")[1]
        assert file.stat().st_size > 0
    assert "Traceback" not in demo.output


def test_a_second_owner_of_a_sqlite_database_is_refused(start: Start) -> None:
    first = start.server()
    second = start.command("serve", "--port", "0")
    assert second.ended() == 5
    assert "one process owns the database" in one_line(second.output)
    database = f"sqlite:///{start.data_dir}/ade.db"
    elsewhere = start.folder / "elsewhere"
    third = start.command(
        "serve", "--port", "0", ADE_STORAGE_DATA_DIR=elsewhere, ADE_DATABASE_URL=database
    )
    assert third.ended() == 5
    assert "one process owns the database" in one_line(third.output)
    assert first.http.get("/readyz").status_code == 200


def test_a_port_that_is_taken_is_said_in_one_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = start.command("serve", "--port", str(port))
        assert refused.ended() == 5
    said = one_line(refused.output)
    assert f"127.0.0.1:{port}" in said
    assert "in use" in said


def test_a_worker_on_sqlite_says_why_not(start: Start) -> None:
    worker = start.command("worker")
    assert worker.ended() == 2
    assert "postgresql://" in one_line(worker.output)


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("worker",), ("settings",)])
def test_a_bad_setting_stops_the_start_in_one_line(start: Start, command: tuple[str]) -> None:
    refused = start.command(*command, ADE_QUEUE_SIZE="many")
    assert refused.ended() == 2
    assert "ADE_QUEUE_SIZE='many'" in one_line(refused.output)


def test_a_lease_that_cannot_be_kept_stops_the_start(start: Start) -> None:
    refused = start.command("serve", "--port", "0", ADE_LEASE_SECONDS=2)
    assert refused.ended() == 2
    assert "ADE_LEASE_MARGIN_SECONDS" in one_line(refused.output)


def test_a_public_address_needs_a_key(start: Start) -> None:
    refused = start.command("serve", "--port", "0", ADE_HOST="0.0.0.0", ADE_BOOTSTRAP_API_KEY="")
    assert refused.ended() == 5
    assert "ADE_BOOTSTRAP_API_KEY" in one_line(refused.output)
    given = start.server(ADE_HOST="0.0.0.0")
    given.stop()
    kept = start.server(ADE_HOST="0.0.0.0", ADE_BOOTSTRAP_API_KEY="")  # there is one by now
    assert kept.stop() == 0


def test_a_database_that_is_not_there_is_said_in_one_line(start: Start, tmp_path: Path) -> None:
    nobody = f"postgresql://nobody@/ade?host={tmp_path}"
    refused = start.command("serve", "--port", "0", ADE_DATABASE_URL=nobody)
    assert refused.ended() == 5
    assert "cannot be reached" in one_line(refused.output)


def test_one_slot_runs_one_job_at_a_time(start: Start) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1)
    jobs = [server.submit(value=n, sleep_ms=60) for n in range(10)]
    most = 0

    def all_ended() -> bool:
        nonlocal most
        most = max(most, len(jobs_of(server.pid)))
        return server.job(jobs[-1])["status"] == "succeeded"

    eventually(all_ended, 60)
    for job in jobs:
        assert server.ended_job(job)["status"] == "succeeded"
    assert most == 1
    spans = sorted((job["started_at"], job["finished_at"]) for job in map(server.job, jobs))
    for (_, ended), (began, _) in pairwise(spans):
        assert ended <= began
    assert server.metric("ade_jobs_claimed_total") == 10


def test_safe_mode_reads_and_runs_nothing(start: Start) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1)
    server.running_job(server.submit(**long_echo(600)))
    waiting = server.submit(value=1)
    server.kill()
    safe = start.server(**SAFE)
    refused = safe.http.post(JOBS, json=echo(value=1))
    assert refused.status_code == 400
    assert refused.json()["code"] == "safe_mode"
    assert refused.json()["detail"].startswith("ADE_SAFE_MODE is enabled")
    health = safe.http.get("/api/v1/health").json()
    assert health["status"] == "degraded"
    assert {part["name"]: part["status"] for part in health["components"]}[
        "safe-mode"
    ] == "degraded"
    assert safe.job(waiting)["status"] == "queued"
    assert jobs_of(safe.pid) == set()
    assert safe.stop() == 0
    normal = start.server()
    assert normal.ended_job(waiting)["status"] == "succeeded"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_jobs_finish(start: Start, number: signal.Signals) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1)
    running = server.submit(**long_echo(2))
    server.running_job(running)
    waiting = server.submit(value=1)
    server.signal(number)
    assert server.ended() == 0
    again = start.server(**SAFE)
    found = again.job(running)
    assert (found["status"], found["attempt"]) == ("succeeded", 1)
    assert again.job(waiting)["status"] == "queued"


def test_a_second_signal_hands_back_at_once(start: Start) -> None:
    server = start.server()
    job = server.submit(**long_echo(600))
    server.running_job(job)
    server.signal(signal.SIGTERM)
    server.said("draining")
    server.signal(signal.SIGTERM)
    assert server.ended(10) == 0
    again = start.server(**SAFE)
    assert again.job(job)["status"] == "queued"
    assert again.log(job)[-1] == "job.released"


def test_the_end_of_the_grace_hands_back(start: Start) -> None:
    server = start.server(ADE_DRAIN_GRACE_SECONDS=0.2, ADE_RETRY_MAX_ATTEMPTS=1)
    job = server.submit(**long_echo(600))
    server.running_job(job)
    assert server.stop(10) == 0
    again = start.server(**SAFE)
    found = again.job(job)
    assert (found["status"], found["attempt"]) == ("queued", 1)


def test_open_streams_do_not_hold_up_the_end(start: Start) -> None:
    server = start.server(ADE_DRAIN_GRACE_SECONDS=0)
    job = server.submit(**long_echo(600))
    server.running_job(job)
    asked = {"Accept": "text/event-stream"}
    with server.http.stream("GET", job["links"]["events"], headers=asked) as stream:
        assert next(stream.iter_lines()) == "id: 1"
        assert server.stop(15) == 0
