"""A zygote may die at any moment: no job is lost, and none is reported wrongly."""

import asyncio
import os
import signal

from tests.processes import aeventually, is_alive
from tests.sandbox.zygote_chaos import Chaos, own_layers

from ade.sandbox.pool import Pool, PoolRules

JOBS = 100


async def test_jobs_end_rightly_or_internally_while_zygotes_are_killed() -> None:
    pool = Pool(own_layers(), PoolRules())
    chaos = Chaos(pool, seed=3)
    try:
        await chaos.run(JOBS)
        assert sum(chaos.ends.values()) == JOBS
        assert chaos.ends["right"] > 0
        assert chaos.kills > 0
        assert await chaos.end_of(0, "afterwards") == "right"
    finally:
        await pool.close()


async def test_a_dead_zygote_is_replaced_and_its_children_die_with_it() -> None:
    pool = Pool(own_layers(), PoolRules())
    chaos = Chaos(pool, seed=1)
    try:
        assert await chaos.end_of(1, "before") == "right"
        await aeventually(lambda: [c for spares in pool._spares.values() for c in spares])
        (zygote,) = pool.zygotes
        spares = [child.pid for children in pool._spares.values() for child in children]
        os.kill(zygote.pid, signal.SIGKILL)
        await aeventually(lambda: not any(is_alive(pid) for pid in [zygote.pid, *spares]))
        assert await chaos.end_of(2, "after") == "right"
        assert zygote not in pool.zygotes
    finally:
        await pool.close()


async def test_closing_the_pool_leaves_no_process() -> None:
    pool = Pool(own_layers(), PoolRules())
    chaos = Chaos(pool, seed=1)
    assert await chaos.end_of(1, "only") == "right"
    pids = [zygote.pid for zygote in pool.zygotes]
    await pool.close()
    await aeventually(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_zygote_that_is_replaced_goes_when_its_last_child_has_ended() -> None:
    pool = Pool(own_layers(), PoolRules(forks_per_zygote_max=5))
    chaos = Chaos(pool, seed=1)

    async def run_many(who: int) -> None:
        for number in range(25):
            assert await chaos.end_of(number, f"{who}, {number}") == "right"

    try:
        await asyncio.gather(*(run_many(who) for who in range(4)))
        await aeventually(lambda: len(pool.zygotes) <= 1)
    finally:
        await pool.close()
