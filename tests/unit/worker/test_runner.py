"""Code whose waiting task is cancelled is killed and gone, also while it reports its stack."""

import asyncio

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
        await code.timed_out.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert code.gone
