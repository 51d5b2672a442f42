"""Jobs stand back from the server as one nice process each, however many they start."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.sandbox.zygote_chaos import own_layers

from ade.sandbox.cgroup import ROOT, CpuGroup
from ade.sandbox.pool import Pool, PoolRules
from ade.sandbox.runtime_environment import own_environment
from ade.sandbox.zygote_client import Child

NICE, JOBS = 10, 3
SHARES_OF_NICE_10 = 110  # the scheduler's own table, by a process of niceness 0 that has 1024


@pytest.fixture(autouse=True)
def _may_make_groups() -> None:
    share = CpuGroup.find(NICE, 1)
    if share is None:
        pytest.skip("no group for the processor may be made here (cgroup version 1, as root)")
    share.close()


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    pool = Pool(own_layers(), PoolRules(nice=NICE, jobs_at_once=JOBS))
    yield pool
    await pool.close()


def group_of(pid: int | str) -> Path:
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    [path] = [line.split(":", 2)[2] for line in lines if "cpu" in line.split(":")[1].split(",")]
    return ROOT / "cpu" / path.lstrip("/")


@asynccontextmanager
async def child_of(pool: Pool) -> AsyncIterator[Child]:
    child = await pool.take(own_environment())
    yield child
    pool.finished(child)


async def test_children_weigh_as_one_nice_process_a_job_and_their_zygote_as_any(pool: Pool) -> None:
    async with child_of(pool) as child:
        folder = group_of(child.pid)
        assert folder != group_of("self")
        assert group_of(child.zygote.pid) == group_of("self")
        shares = int((folder / "cpu.shares").read_text())
        assert shares == pytest.approx(JOBS * SHARES_OF_NICE_10, abs=JOBS)


async def test_the_group_is_gone_with_its_pool() -> None:
    pool = Pool(own_layers(), PoolRules(nice=NICE))
    async with child_of(pool) as child:
        folder = group_of(child.pid)
        assert folder.is_dir()
    await pool.close()
    assert not folder.exists()


async def test_who_need_not_be_nice_stays_where_the_worker_is() -> None:
    pool = Pool(own_layers(), PoolRules(nice=0))
    async with child_of(pool) as child:
        assert group_of(child.pid) == group_of("self")
    await pool.close()
