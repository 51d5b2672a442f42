"""What the worker asks of whatever runs the code: start it, hear from it, kill it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ade.domain.limits import Limits
from ade.domain.outcome import Outcome
from ade.sandbox.words import Tell


@dataclass(frozen=True, slots=True)
class Assignment:
    """Hold all that is needed to run one attempt."""

    job_id: str
    attempt: int
    entry: str
    inputs: dict[str, Any]
    limits: Limits
    folder: Path
    network: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    environment: str | None = None
    warm: tuple[str, ...] = ()


class Running(Protocol):
    """Stand for code that was started."""

    async def outcome(self) -> Outcome:
        """Wait until the code and everything that it started is gone, and say what came of it."""
        ...

    def stop(self) -> None:
        """Ask the code to end, and kill it if it does not soon; return at once."""
        ...

    def kill(self) -> None:
        """Kill the code and everything that it started, before returning."""
        ...

    def time_out(self) -> None:
        """Kill the code because its time is over; it may say first where it is, if it is quick."""
        ...


class Runner(Protocol):
    """Start code."""

    @property
    def isolation(self) -> tuple[str, ...]:
        """Name the walls that hold around what is started; empty is none."""
        ...

    @property
    def refusal(self) -> str | None:
        """Say why other people's code is not started here; None if it is."""
        ...

    def start(self, assignment: Assignment, tell: Tell) -> Running:
        """Start an attempt; `tell` hears its progress."""
        ...


async def see_to_the_end(
    running: Running, timeout_seconds: float | None = None
) -> tuple[Outcome, bool]:
    """Wait for what came of the code, and tell whether it was killed for taking too long.

    Code that nobody waits for any more is killed too, and is gone before the waiting ends.
    """
    ending = asyncio.ensure_future(running.outcome())
    try:
        async with asyncio.timeout(timeout_seconds) as deadline:
            return await asyncio.shield(ending), False
    except TimeoutError:
        running.time_out()
        return await ending, deadline.expired()
    except asyncio.CancelledError:
        running.kill()
        await ending
        raise
