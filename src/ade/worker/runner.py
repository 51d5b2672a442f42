"""What the worker requires of a runner: start code, report its progress, stop it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from ade.domain.outcome import Outcome
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec

# How long an interpreter may take to start before the job's own time begins to run.
START_SECONDS_MAX = 120.0


class RunHandle(Protocol):
    """Control code that was started."""

    def when_started(self, call: Callable[[], None]) -> None:
        """Call back once when the code starts, at once if it has."""
        ...

    async def outcome(self) -> Outcome:
        """Wait until the code and every process that it started are gone; return the outcome."""
        ...

    def stop(self) -> None:
        """Ask the code to end, and kill it if it does not end soon; return at once."""
        ...

    def kill(self) -> None:
        """Kill the code and every process that it started, before returning."""
        ...

    def time_out(self) -> None:
        """Kill the code because its time is over, after it had a moment to report its stack."""
        ...


class Runner(Protocol):
    """Start code."""

    @property
    def isolation(self) -> tuple[str, ...]:
        """Name the sandbox layers around what is started; empty means no isolation."""
        ...

    @property
    def refusal(self) -> str | None:
        """Return why untrusted code is not started here; None if it is."""
        ...

    def start(self, spec: RunSpec, on_progress: OnProgress) -> RunHandle:
        """Start an attempt; `on_progress` is called with each progress report."""
        ...


async def see_to_the_end(
    running: RunHandle,
    timeout_seconds: float | None = None,
    start_seconds_max: float = START_SECONDS_MAX,
) -> tuple[Outcome, bool]:
    """Wait for the outcome; return it, and whether the code was killed for taking too long.

    Its time runs from the start of the code: an interpreter that starts slowly costs it nothing,
    within a limit of its own.
    If the waiting task is cancelled, the code is killed and gone before the cancellation goes on.
    """
    ending = asyncio.ensure_future(running.outcome())
    try:
        try:
            async with asyncio.timeout(None) as deadline:
                if timeout_seconds is not None:
                    _limit(running, deadline, timeout_seconds, start_seconds_max)
                return await asyncio.shield(ending), False
        except TimeoutError:
            running.time_out()
            return await asyncio.shield(ending), deadline.expired()
    except asyncio.CancelledError:
        running.kill()
        await ending
        raise


def _limit(
    running: RunHandle, deadline: asyncio.Timeout, seconds: float, start_seconds_max: float
) -> None:
    """Let the code run for so long, from its start."""
    loop = asyncio.get_running_loop()

    def started() -> None:
        with contextlib.suppress(RuntimeError):  # it has ended, or its time is over
            deadline.reschedule(loop.time() + seconds)

    deadline.reschedule(loop.time() + start_seconds_max + seconds)
    running.when_started(started)
