# Written from ade/client/aio/targets.py by scripts/write_sync_client.py; edit that instead.
"""Targets: serial lanes, and what a person decides about a blocked one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ade.client.answers.jobs import TargetAnswer
from ade.client.core.exchange import call_json, request_of
from ade.client.core.names import segment
from ade.client.core.pages import every, filters
from ade.client.core.submission import given
from ade.client.sync.driver import Session
from ade.client.sync.jobs import Job, Jobs


@dataclass(frozen=True)
class Target(TargetAnswer):
    """A lane: at most one of its jobs is live."""

    session: Session = field(repr=False, compare=False, kw_only=True)

    def refresh(self) -> Self:
        """Read it again."""
        request = request_of("GET", self._path(""))
        body = self.session.run(call_json(request, self.session.policy))
        return type(self).of(body, session=self.session)

    def submit(self, job_type: str, inputs: Mapping[str, Any] | None = None, **options: Any) -> Job:
        """Submit a job on this lane: it starts when those before it have succeeded."""
        jobs = Jobs(self.session)
        return jobs.submit(job_type, inputs, target_id=self.id, **options)

    def jobs(
        self, status: str | Sequence[str] | None = None, limit: int | None = None
    ) -> Iterator[Job]:
        """List its jobs, newest first."""
        path, policy = self._path("/jobs"), self.session.policy
        return self.session.iterate(every(path, policy, self._job, filters(status=status), limit))

    def resume(self, job_id: str) -> Job:
        """Queue a paused or failed job of the lane again."""
        return self._act(job_id, "resume", None)

    def resolve(self, job_id: str, result: Any, note: str | None = None) -> Job:
        """Record a result that a person found; the job counts as succeeded and frees the lane."""
        return self._act(job_id, "resolve", {"result": result, **given(note=note)})

    def clear(self, job_id: str, note: str | None = None) -> Job:
        """Free the lane without a result; the job stays as it ended."""
        return self._act(job_id, "clear", given(note=note))

    def cancel(self, job_id: str, reason: str | None = None) -> Job:
        """Cancel a job of the lane."""
        return self._act(job_id, "cancel", given(reason=reason))

    def interrupt(self, job_id: str, reason: str | None = None) -> Job:
        """Pause a job of the lane; it holds the lane until someone decides."""
        return self._act(job_id, "interrupt", given(reason=reason))

    def _act(self, job_id: str, action: str, body: Any) -> Job:
        request = request_of(
            "POST", self._path(f"/jobs/{segment(job_id)}/{action}"), json_body=body
        )
        return self._job(self.session.run(call_json(request, self.session.policy)))

    def _job(self, body: Mapping[str, Any]) -> Job:
        return Job.of(body, session=self.session)

    def _path(self, rest: str) -> str:
        return self.session.path(f"targets/{segment(self.id)}{rest}")


class Targets:
    """The lanes of a workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, target_id: str) -> Target:
        """Read which job holds a lane and how many wait; an unused lane is free."""
        return Target(id=target_id, session=self._session).refresh()
