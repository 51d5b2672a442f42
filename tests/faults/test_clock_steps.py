"""The wall clocks of live processes are stepped: no job ends, is lost or runs again because of it.

Jobs are running and waiting at every step. A step is followed by a few renewals and sweeps of every
process before the next one, so that what a step breaks is seen by somebody.
"""

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.faketime import FakeClock, forget_dead_processes, needs_faketime
from tests.processes import eventually
from tests.system.server import Server, Start, long_echo

pytestmark = [pytest.mark.slow, needs_faketime]

HOUR, DAY = 3600, 86_400
# There and back, so that each step is one of those that a host's clock makes.
STEPS = (20, -20, HOUR, -HOUR, DAY, -DAY, -20, -HOUR)
# A lease that is shorter than the smallest step, and lasts on a busy machine.
SETTINGS = {
    "ADE_QUEUE_SIZE": 0,
    "ADE_MAX_CONCURRENCY": 2,
    "ADE_LEASE_SECONDS": 6,
    "ADE_RENEW_SECONDS": 1,
}
LIMITS = {"timeout_ms": 300_000}
COMMITS = 6
# Some wait for a slot while the clocks are stepped.
LONG_JOBS, LONG_SECONDS = 8, 6
NEAR_SECONDS = 8  # less than the smallest step


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[FakeClock]:
    """Make a clock that the test steps."""
    yield FakeClock(tmp_path)
    forget_dead_processes()


def commits(server: Server) -> float:
    """Count the transactions of a process: it sweeps every 0.2 s and renews every second."""
    return server.metric("ade_commit_items_count")


def let_sweep(servers: list[Server]) -> None:
    """Wait until each server has renewed and swept a few times."""
    before = [commits(server) for server in servers]
    for server, count in zip(servers, before, strict=True):
        eventually(partial(_has_committed, server, count + COMMITS))


def _has_committed(server: Server, count: float) -> bool:
    return commits(server) >= count


def let_notice(server: Server, clock: FakeClock) -> None:
    """Wait until a server's wall clock has been stepped: its responses tell the date by it."""

    def has_noticed() -> bool:
        told = parsedate_to_datetime(server.http.get("/healthz").headers["date"])
        return abs(told.timestamp() - time.time() - clock.offset_seconds) < NEAR_SECONDS

    eventually(has_noticed)


def submit_and_step(servers: list[Server], *clocks: FakeClock) -> list[dict[str, Any]]:
    """Step clocks while jobs run and wait; return the jobs.

    The first clock is that of the last server. A second one goes the other way.
    """
    jobs = [servers[0].submit(LIMITS, **long_echo(LONG_SECONDS)) for _ in range(LONG_JOBS)]
    for job in jobs[:2]:
        servers[0].running_job(job)
    for step in STEPS:
        for direction, clock in zip((1, -1), clocks, strict=False):
            clock.step(direction * step)
        let_notice(servers[-1], clocks[0])
        jobs += [server.submit(LIMITS, value="short") for server in servers]
        let_sweep(servers)
    return jobs


def check(server: Server, jobs: list[dict[str, Any]]) -> None:
    """Each job succeeds in its first attempt, and its log never runs backwards."""
    for job in jobs:
        found = server.ended_job(job)
        events = server.events(job)
        assert (found["status"], found["attempt"]) == ("succeeded", 1), events
        words = [event["event"] for event in events if event["event"].startswith("job.")]
        assert words == ["job.queued", "job.started", "job.succeeded"]
        times = [event["at"] for event in events]
        assert times == sorted(times)
        assert found["submitted_at"] <= found["started_at"] <= found["finished_at"]


def test_a_stepped_server_on_the_embedded_database(start: Start, clock: FakeClock) -> None:
    server = start.server(**SETTINGS, **clock.environment)
    check(server, submit_and_step([server], clock))
    assert server.stop() == 0


def test_a_stepped_server_and_a_stepped_worker_on_postgresql(
    start_on_postgres: Start, clock: FakeClock, tmp_path: Path
) -> None:
    """They step in opposite directions, beside a server whose clock is right."""
    workers = FakeClock(tmp_path)
    right = start_on_postgres.server(**SETTINGS)
    stepped = start_on_postgres.server(**SETTINGS, **clock.environment)
    worker = start_on_postgres.worker(**SETTINGS, **workers.environment)
    jobs = submit_and_step([right, stepped], clock, workers)
    check(right, jobs)
    ran = {event["data"].get("worker") for job in jobs for event in right.events(job)}
    assert worker.name in ran
    assert worker.stop() == 0
    assert stepped.stop() == 0
