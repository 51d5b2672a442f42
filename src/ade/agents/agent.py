"""The agent: parts that take work and run it, and one heartbeat for all of them.

A part takes jobs of its own kinds from the server, runs them, and delivers what becomes of them.
`ade.agents.containers.work` is the one for containers.
"""

import asyncio
import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import structlog

from ade.agents.contract_calls import ContractCalls
from ade.agents.telemetry import host_facts
from ade.domain.errors import AdeError

HEARTBEAT_SECONDS = 10.0
log = structlog.get_logger()


class AgentPart(Protocol):
    """Take jobs of some kinds, and run them."""

    async def run(self) -> None:
        """Work until drained."""
        ...

    def drain(self) -> None:
        """Take no more jobs; a second call hurries."""
        ...

    def active_jobs(self) -> list[str]:
        """Name the jobs that this part holds."""
        ...

    def facts(self) -> dict[str, Any]:
        """Say of the part what a heartbeat tells."""
        ...


class Agent:
    """Run parts until they are drained, and say meanwhile that the host is there."""

    def __init__(
        self,
        calls: ContractCalls,
        parts: Sequence[AgentPart],
        folder: Path,
        about: dict[str, Any] | None = None,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._calls = calls
        self._parts = parts
        self._folder = folder
        self._about = about or {}
        self._heartbeat_seconds = heartbeat_seconds

    def drain(self) -> None:
        """Take no more jobs, and end when those that run have ended; a second call hurries."""
        for part in self._parts:
            part.drain()

    async def run(self) -> None:
        """Run until drained; if a part breaks, the others are drained, and its error is raised."""
        beating = asyncio.create_task(self._beat_for_ever(), name="heartbeat")
        working = [asyncio.create_task(part.run()) for part in self._parts]
        try:
            await asyncio.wait(working, return_when=asyncio.FIRST_EXCEPTION)
            if any(task.done() and task.exception() for task in working):
                self.drain()
            await asyncio.gather(*working)
        finally:
            beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beating

    async def _beat_for_ever(self) -> None:
        is_away = False
        while True:
            try:
                await self._beat()
                if is_away:
                    log.info("the server answers again")
                is_away = False
            except AdeError as error:
                if not is_away:
                    log.warning("the server does not take the heartbeat", reason=error.detail)
                is_away = True
            await asyncio.sleep(self._heartbeat_seconds * random.uniform(0.8, 1.2))

    async def _beat(self) -> None:
        active = [job_id for part in self._parts for job_id in part.active_jobs()]
        info = await asyncio.to_thread(host_facts, self._folder)
        for part in self._parts:
            info |= part.facts()
        info |= {**self._about, "active_jobs": active, "active_job_count": len(active)}
        await self._calls.heartbeat(info, active)
