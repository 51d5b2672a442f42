"""A process is frozen past its lease and wakes up: it finds that its job is another's."""

import fcntl
import os
import signal
from typing import Any

import psycopg
import pytest
from tests.processes import eventually, is_alive, is_frozen, jobs_of
from tests.system.server import Server, Start, long_echo, mirrored


def record_of(server: Server, job: dict[str, Any], folder: Any) -> dict[str, Any]:
    """Read all that is recorded of a job."""
    assert mirrored(folder, len(server.events(job))) == server.events(job)
    return {
        "job": server.job(job),
        "result": server.result(job),
        "events": server.events(job),
        "files": {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()},
    }


def freeze(server: Server, postgres_url: str) -> None:
    """Freeze a process at a moment when it is in no transaction."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        while True:
            server.signal(signal.SIGSTOP)
            eventually(lambda: is_frozen(server.pid))
            # Twice: what was sent just before may not have been begun at the first look.
            if not any([_busy(connection), _busy(connection)]):
                return
            server.signal(signal.SIGCONT)


def _busy(connection: Any) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND state <> 'idle'"
    ).fetchone()
    return bool(found[0])


@pytest.mark.parametrize("with_its_child", [False, True])
def test_who_was_frozen_records_nothing(
    start_on_postgres: Start, postgres_url: str, with_its_child: bool
) -> None:
    start = start_on_postgres
    frozen = start.server()
    job = frozen.submit(**long_echo(4))
    frozen.running_job(job)
    (child,) = jobs_of(frozen.pid)
    if with_its_child:  # a suspended machine; alone, the child ends and its result waits unheard
        os.kill(child, signal.SIGSTOP)
    freeze(frozen, postgres_url)

    other = start.server()
    found = other.ended_job(job)
    assert (found["status"], found["attempt"]) == ("succeeded", 2)
    words = [word for word in other.log(job) if word.startswith("job.")]
    assert words == ["job.queued", "job.started", "job.lost", "job.started", "job.succeeded"]
    before = record_of(other, job, start.data_dir / "jobs" / job["job_id"])
    if with_its_child:
        assert is_alive(child)
        os.kill(child, signal.SIGCONT)
    frozen.signal(signal.SIGCONT)

    frozen.said('"attempt given up"|"result discarded"')
    eventually(lambda: not is_alive(child))
    assert frozen.metric("ade_fence_rejected_total") >= 1
    assert record_of(other, job, start.data_dir / "jobs" / job["job_id"]) == before
    # Awake, it is a worker like any other.
    later = frozen.submit(value="later")
    assert frozen.ended_job(later)["status"] == "succeeded"
    assert frozen.stop() == 0


def test_a_short_freeze_costs_nothing(start_on_postgres: Start) -> None:
    server = start_on_postgres.server(ADE_LEASE_SECONDS=30)
    other = start_on_postgres.server(ADE_LEASE_SECONDS=30)
    jobs = [server.submit(**long_echo(1)) for _ in range(4)]
    for job in jobs:
        other.wait(job, lambda found: found["status"] == "running")
    server.signal(signal.SIGSTOP)
    assert other.job(jobs[0])["job_id"] == jobs[0]["job_id"]
    server.signal(signal.SIGCONT)
    for job in jobs:
        found = other.ended_job(job)
        assert (found["status"], found["attempt"]) == ("succeeded", 1)


def test_a_process_frozen_in_a_transaction_blocks_no_other(
    start_on_postgres: Start, postgres_url: str
) -> None:
    """Its locks would hold back the sweep, and the gate's every submission, while it sleeps."""
    frozen = start_on_postgres.server()
    job = frozen.submit(**long_echo(4))
    frozen.running_job(job)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", (job["job_id"],))
        eventually(lambda: _waits_for_a_lock(postgres_url))
        frozen.signal(signal.SIGSTOP)  # and now the lock is granted to who cannot use it
    other = start_on_postgres.server()
    found = other.ended_job(job, 20)
    assert (found["status"], found["attempt"]) == ("succeeded", 2)
    frozen.signal(signal.SIGCONT)
    frozen.said('"attempt given up"|"result discarded"')
    assert other.job(job) == found


def test_a_process_frozen_with_the_event_file_blocks_no_other(start: Start) -> None:
    server = start.server()
    job = server.submit(**long_echo(4))
    server.running_job(job)
    folder = start.data_dir / "jobs" / job["job_id"]
    with (folder / "events.ndjson").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert server.job(job)["status"] == "running"
        assert server.ended_job(job)["status"] == "succeeded"
        assert mirrored(folder, len(server.events(job))) == server.events(job)


def _waits_for_a_lock(postgres_url: str) -> bool:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock'"
        ).fetchone()
    return found is not None and found[0] > 0
