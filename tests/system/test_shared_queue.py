"""Several processes on one PostgreSQL: one queue, each job once, news across processes."""

import time
from collections import Counter

import httpx
from tests.processes import eventually, jobs_of
from tests.system.server import JOBS, KEY, Server, Start, echo, long_echo

# Far apart, so that what happens soon happened because of a notification.
RARE_POLLS = {"ADE_POLL_SECONDS": 30, "ADE_SWEEP_SECONDS": 60}


def workers_of(server: Server, job: dict[str, object]) -> list[str]:
    """List who ran a job, one entry for each attempt."""
    found = server.http.get(f"{JOBS}/{job['job_id']}/attempts").json()["items"]
    return [attempt["worker"] for attempt in found]


def test_processes_share_the_queue(start_on_postgres: Start) -> None:
    settings = {"ADE_QUEUE_SIZE": 0, "ADE_MAX_CONCURRENCY": 2}
    one = start_on_postgres.server(**settings)
    other = start_on_postgres.server(**settings)
    worker = start_on_postgres.worker(**settings)
    jobs = [(one, other)[n % 2].submit(value=n, sleep_ms=150) for n in range(24)]
    for n, job in enumerate(jobs):
        assert other.ended_job(job)["status"] == "succeeded"
        assert one.result(job)["outputs"]["result_json"] == n
    ran = Counter(name for job in jobs for name in workers_of(one, job))
    assert ran.total() == 24  # each once
    assert len(ran) == 3  # and everyone took part
    assert worker.name in ran
    assert all(one.log(job).count("job.started") == 1 for job in jobs)
    assert worker.stop() == 0


def test_a_cancel_reaches_a_job_in_another_process(start_on_postgres: Start) -> None:
    server = start_on_postgres.server(ADE_MAX_CONCURRENCY=1, **RARE_POLLS)
    blocked = server.submit(**long_echo(600))
    server.running_job(blocked)
    other = start_on_postgres.server(**RARE_POLLS)
    job = server.submit(**long_echo(600))
    server.running_job(job)
    assert len(jobs_of(other.pid)) == 1  # the first one's only slot is taken
    began = time.monotonic()
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job)["status"] == "cancelled"
    assert time.monotonic() - began < 3  # within a renewal, at the latest
    eventually(lambda: not jobs_of(other.pid))
    assert server.job(blocked)["status"] == "running"


def test_who_waits_hears_of_an_end_elsewhere(start_on_postgres: Start) -> None:
    """No process but the worker runs jobs; the server's waiter is woken by a notification."""
    server = start_on_postgres.server(ADE_MAX_CONCURRENCY=1, **RARE_POLLS)
    server.running_job(server.submit(**long_echo(600)))
    start_on_postgres.worker(**RARE_POLLS)
    waited = []
    with httpx.Client(headers={"Authorization": f"Bearer {KEY}", "Prefer": "wait=20"}) as client:
        for n in range(5):
            asked = time.monotonic()
            answer = client.post(server.url + JOBS, json=echo(value=n), timeout=30)
            waited.append(time.monotonic() - asked)
            assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")
    assert min(waited) < 0.9, waited  # sooner than the look that is taken anyway


def test_the_first_starts_may_come_at_once(start_on_empty_postgres: Start) -> None:
    commands = [start_on_empty_postgres.command("serve", "--port", "0") for _ in range(3)]
    for command in commands:
        command.said("is ready: http://")
    assert [command.stop() for command in commands] == [0, 0, 0]
