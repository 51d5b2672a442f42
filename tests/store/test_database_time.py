"""A session's time: the database's, carried by the boot clock; no wall clock moves it."""

import math
import time
from dataclasses import dataclass
from typing import Any

import pytest
from tests.databases import SqlDatabase
from tests.store.acts import submission

from ade.clock import SystemClock
from ade.domain.errors import LeaseLost
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.store import session
from ade.store.rows import Claim, JobRef, LeaseRef

SECOND = 1_000_000
HOUR = 3600 * SECOND


class Wall:
    """A wall clock that may be stepped."""

    def __init__(self) -> None:
        self.offset_us = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.offset_us


@pytest.fixture
def wall() -> Wall:
    return Wall()


def kernel_of(database: SqlDatabase, wall: Wall) -> Kernel:
    return Kernel(database.open(SystemClock(wall_us=wall)))


@pytest.mark.parametrize("step_us", [-24 * HOUR, -HOUR, 20 * SECOND, HOUR])
def test_a_step_of_the_wall_clock_loses_no_job(
    sql_database: SqlDatabase, wall: Wall, step_us: int
) -> None:
    kernel = kernel_of(sql_database, wall)
    submitted = kernel.now.submit(submission()).job
    (claim,) = kernel.now.claim(ClaimRequest("worker", 1))
    wall.offset_us += step_us
    assert kernel.now.expire().lost == 0
    kernel.now.finish(Finish(claim, None))
    events = kernel.now.read(lambda r: r.read_events(JobRef(claim.workspace_id, claim.id), 0, 9))
    times = [event.at for event in events]
    assert times == sorted(times)
    assert times[-1] - submitted.submitted_at < 60 * SECOND


def test_processes_whose_wall_clocks_differ_agree_on_the_time(
    sql_database: SqlDatabase, wall: Wall
) -> None:
    if sql_database.name == "sqlite":
        pytest.skip("one process owns the writes of a SQLite file")
    ahead = Wall()
    ahead.offset_us = HOUR
    kernels = [kernel_of(sql_database, wall), kernel_of(sql_database, ahead)]
    times = [kernel.now.submit(submission()).job.submitted_at for kernel in kernels]
    assert abs(times[0] - times[1]) < 60 * SECOND


def test_time_goes_on_after_a_restart_with_a_clock_set_back(
    sql_database: SqlDatabase, wall: Wall
) -> None:
    """On SQLite: elsewhere the database tells the time."""
    first = kernel_of(sql_database, wall)
    first.now.submit(submission())
    (claim,) = first.now.claim(ClaimRequest("worker", 1))
    first.store.close()
    wall.offset_us -= HOUR
    second = kernel_of(sql_database, wall)
    later = second.now.submit(submission()).job
    assert claim.started_at is not None
    assert claim.started_at <= later.submitted_at < claim.started_at + 60 * SECOND


@dataclass
class World:
    """Hold the time of a simulated world, and how far the database's clock is from it."""

    boot_us: int = 10_000 * SECOND
    database_offset_us: int = 1_800_000_000 * SECOND

    def kernel(self, database: SqlDatabase) -> Kernel:
        """Open a kernel of this world, also on a database without a clock."""
        opened = database.open(SystemClock(lambda: 0, lambda: self.boot_us))
        dialect: Any = opened.dialect
        dialect.server_now_us = lambda connection: self.boot_us + self.database_offset_us
        return Kernel(opened)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Let the database be asked for its time in every transaction."""
    monkeypatch.setattr(session, "REFRESH_SECONDS", -1)
    return World()


def running(worker: Kernel, world: World) -> Claim:
    """Start a job when every clock has long been steady."""
    world.boot_us += HOUR
    worker.now.submit(submission())
    (claim,) = worker.now.claim(ClaimRequest("worker", 1))
    return claim


def renew(worker: Kernel, claim: Claim) -> None:
    (answer,) = worker.now.many("renew", [LeaseRef(claim.workspace_id, claim.id, claim.fence)])
    assert not isinstance(answer, LeaseLost)


@pytest.mark.parametrize("step_us", [-24 * HOUR, -20 * SECOND, 20 * SECOND, 24 * HOUR])
def test_a_step_of_the_databases_own_clock_loses_no_job(
    sql_database: SqlDatabase, world: World, step_us: int
) -> None:
    worker, sweeper = world.kernel(sql_database), world.kernel(sql_database)
    sweeper.now.expire()
    claim = running(worker, world)
    world.database_offset_us += step_us
    for _ in range(10):
        assert sweeper.now.expire().lost == 0
        renew(worker, claim)
        world.boot_us += 5 * SECOND
    world.boot_us += 20 * SECOND
    assert sweeper.now.expire().lost == 1


def test_a_sweeper_that_has_just_started_lets_workers_renew_first(
    sql_database: SqlDatabase, world: World
) -> None:
    worker = world.kernel(sql_database)
    claim = running(worker, world)
    world.database_offset_us += HOUR
    sweeper = world.kernel(sql_database)
    assert sweeper.now.expire().lost == 0
    renew(worker, claim)
    world.boot_us += 14 * SECOND
    assert sweeper.now.expire().lost == 0


def test_a_sweeper_that_has_not_noticed_a_step_yet_asks_before_it_expires_a_lease(
    sql_database: SqlDatabase, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, sweeper = world.kernel(sql_database), world.kernel(sql_database)
    sweeper.now.expire()
    claim = running(worker, world)
    world.database_offset_us -= HOUR
    renew(worker, claim)
    monkeypatch.setattr(session, "REFRESH_SECONDS", math.inf)
    assert sweeper.now.expire().lost == 0
