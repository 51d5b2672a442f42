"""Targets: serial lanes, and what a person decides about a blocked one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ade.client.aio.driver import AsyncSession
from ade.client.aio.jobs import AsyncJob, AsyncJobs
from ade.client.answers.jobs import TargetAnswer
from ade.client.core.exchange import call_json, request_of
from ade.client.core.names import segment
from ade.client.core.pages import every, filters
from ade.client.core.submission import given


@dataclass(frozen=True)
class AsyncTarget(TargetAnswer):
    """A lane: at most one of its jobs is live."""

    session: AsyncSession = field(repr=False, compare=False, kw_only=True)

    async def refresh(self) -> Self:
        """Read it again."""
        request = request_of("GET", self._path(""))
        body = await self.session.run(call_json(request, self.session.policy))
        return type(self).of(body, session=self.session)

    async def submit(
        self, job_type: str, inputs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncJob:
        """Submit a job on this lane: it starts when those before it have succeeded."""
        jobs = AsyncJobs(self.session)
        return await jobs.submit(job_type, inputs, target_id=self.id, **options)

    def jobs(
        self, status: str | Sequence[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[AsyncJob]:
        """List its jobs, newest first."""
        path, policy = self._path("/jobs"), self.session.policy
        return self.session.iterate(every(path, policy, self._job, filters(status=status), limit))

    async def resume(self, job_id: str) -> AsyncJob:
        """Queue a paused or failed job of the lane again."""
        return await self._act(job_id, "resume", None)

    async def resolve(self, job_id: str, result: Any, note: str | None = None) -> AsyncJob:
        """Record a result that a person found; the job counts as succeeded and frees the lane."""
        return await self._act(job_id, "resolve", {"result": result, **given(note=note)})

    async def clear(self, job_id: str, note: str | None = None) -> AsyncJob:
        """Free the lane without a result; the job stays as it ended."""
        return await self._act(job_id, "clear", given(note=note))

    async def cancel(self, job_id: str, reason: str | None = None) -> AsyncJob:
        """Cancel a job of the lane."""
        return await self._act(job_id, "cancel", given(reason=reason))

    async def interrupt(self, job_id: str, reason: str | None = None) -> AsyncJob:
        """Pause a job of the lane; it holds the lane until someone decides."""
        return await self._act(job_id, "interrupt", given(reason=reason))

    async def _act(self, job_id: str, action: str, body: Any) -> AsyncJob:
        request = request_of(
            "POST", self._path(f"/jobs/{segment(job_id)}/{action}"), json_body=body
        )
        return self._job(await self.session.run(call_json(request, self.session.policy)))

    def _job(self, body: Mapping[str, Any]) -> AsyncJob:
        return AsyncJob.of(body, session=self.session)

    def _path(self, rest: str) -> str:
        return self.session.path(f"targets/{segment(self.id)}{rest}")


class AsyncTargets:
    """The lanes of a workspace."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def get(self, target_id: str) -> AsyncTarget:
        """Read which job holds a lane and how many wait; an unused lane is free."""
        return await AsyncTarget(id=target_id, session=self._session).refresh()
