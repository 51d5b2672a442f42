"""The same calls from an event loop."""

import asyncio
import json

import pytest
from tests.store.acts import Acts, held, submission, success

from ade.domain.errors import LeaseLost, Unavailable
from ade.domain.job import Status
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish, Finished
from ade.store.rows import JobRef


async def test_a_life(acts: Acts) -> None:
    kernel = acts.kernel
    accepted = await kernel.submit(submission())
    (claim,) = await kernel.claim(ClaimRequest("worker", 1))
    assert claim.id == accepted.job.id
    (kept,) = await kernel.renew([held(claim)])
    assert not isinstance(kept, LeaseLost)
    recorded = await kernel.finish(Finish(claim, success(answer=42)))
    assert recorded == Finished(Status.SUCCEEDED)
    ref = JobRef(claim.workspace_id, claim.id)
    result = await kernel.read(lambda reading: reading.read_result(ref))
    assert json.loads(result or "") == {"answer": 42}


async def test_an_error_is_raised_to_its_caller(acts: Acts) -> None:
    await acts.kernel.submit(submission())
    (claim,) = await acts.kernel.claim(ClaimRequest("worker", 1))
    await acts.kernel.finish(Finish(claim, success()))
    with pytest.raises(LeaseLost):
        await acts.kernel.finish(Finish(claim, success()))


async def test_many_callers_at_once(acts: Acts) -> None:
    accepted = await asyncio.gather(*[acts.kernel.submit(submission()) for _ in range(50)])
    assert len({one.job.id for one in accepted}) == 50


async def test_nothing_asked_is_nothing_done(acts: Acts) -> None:
    assert await acts.kernel.submit_many([]) == []
    assert await acts.kernel.renew([]) == []


async def test_a_waiter_is_woken(acts: Acts) -> None:
    with acts.kernel.notifier.subscribe("work:local") as bell:
        await acts.kernel.submit(submission())
        assert await bell.wait(30)


def test_a_closed_store_refuses(acts: Acts) -> None:
    closing = acts.kernel.store
    acts.submit()
    group = getattr(closing, "_group", closing)  # leave the connections open for what follows
    group.close()
    with pytest.raises(Unavailable, match="closed"):
        acts.submit()
