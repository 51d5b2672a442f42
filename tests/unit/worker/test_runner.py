"""Code is waited for: its time runs from its start, and it is gone when the wait is cancelled."""

import asyncio
from collections.abc import Callable

import pytest

from ade.domain.job import Status
from ade.domain.outcome import Outcome
from ade.worker.runner import see_to_the_end


class Slow:
    """Be code that ends only when it is killed."""

    def __init__(self) -> None:
        self.timed_out = asyncio.Event()
        self.killed = asyncio.Event()
        self.gone = False
        self.start: Callable[[], None] = lambda: None
        self.asked = asyncio.Event()

    def when_started(self, call: Callable[[], None]) -> None:
        """Start when the test says so."""
        self.start = call
        self.asked.set()

    async def outcome(self) -> Outcome:
        """Wait for the end."""
        await self.killed.wait()
        self.gone = True
        return Outcome(Status.FAILED)

    def stop(self) -> None:
        """Go on."""

    def kill(self) -> None:
        """End."""
        self.killed.set()

    def time_out(self) -> None:
        """Take a moment."""
        self.timed_out.set()


@pytest.mark.parametrize("timeout_seconds", [None, 0.01])
async def test_a_cancelled_wait_kills_the_code_first(timeout_seconds: float | None) -> None:
    code = Slow()
    waiting = asyncio.create_task(see_to_the_end(code, timeout_seconds))
    if timeout_seconds is None:
        await asyncio.sleep(0)
    else:
        await code.asked.wait()
        code.start()
        await code.timed_out.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert code.gone


async def test_the_time_before_the_code_starts_is_not_counted() -> None:
    code = Slow()
    waiting = asyncio.create_task(see_to_the_end(code, 0.01))
    await code.asked.wait()
    late = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, late.set)
    await late.wait()
    assert not code.timed_out.is_set()
    code.start()
    await code.timed_out.wait()
    code.kill()
    assert (await waiting)[1]


async def test_code_that_ends_in_time_was_not_timed_out() -> None:
    code = Slow()
    waiting = asyncio.create_task(see_to_the_end(code, 60))
    await code.asked.wait()
    code.kill()
    assert not (await waiting)[1]
    code.start()  # too late to matter


async def test_code_that_never_starts_is_killed_when_its_time_to_start_is_over() -> None:
    code = Slow()
    waiting = asyncio.create_task(see_to_the_end(code, 0.01, start_seconds_max=0.01))
    await code.timed_out.wait()
    code.kill()
    assert (await waiting)[1]
