# Written from ade/client/aio/builds.py by scripts/write_sync_client.py; edit that instead.
"""Builds: environments being made ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ade.client.answers.catalogue import BuildAnswer
from ade.client.core.exchange import call_json, call_text, request_of
from ade.client.core.names import segment
from ade.client.core.pages import every, filters
from ade.client.core.waiting import until_ended
from ade.client.sync.driver import Session
from ade.client.sync.jobs import Job

SETTLED = frozenset({"ready", "failed", "cancelled"})


@dataclass(frozen=True)
class Build(BuildAnswer):
    """A prepared environment for one version of a configuration, or the request for one."""

    session: Session = field(repr=False, compare=False, kw_only=True)

    @property
    def job(self) -> Job | None:
        """Return the job that does the work, of which only the id is filled in."""
        return None if self.job_id is None else Job(id=self.job_id, session=self.session)

    def refresh(self) -> Self:
        """Read it again."""
        return self._read(request_of("GET", self._path("")))

    def wait(self, timeout_seconds: float | None = None) -> Self:
        """Wait until it is ready, failed or cancelled; raise WaitTimedOut if it takes too long."""
        if self.has_ended:
            return self
        job_path = None if self.job_id is None else self.session.path(f"jobs/{self.job_id}")
        policy = self.session.policy
        call = until_ended(self._path(""), job_path, policy, timeout_seconds, SETTLED)
        return type(self).of(self.session.run(call), session=self.session)

    def log(self) -> str:
        """Read its log so far."""
        request = request_of("GET", self._path("/log"))
        return self.session.run(call_text(request, self.session.policy))

    def cancel(self) -> Self:
        """Cancel it; runs that wait for it fail."""
        return self._read(request_of("POST", self._path("/cancel"), repeatable=True))

    def _read(self, request: Any) -> Self:
        body = self.session.run(call_json(request, self.session.policy))
        return type(self).of(body, session=self.session)

    def _path(self, rest: str) -> str:
        return self.session.path(f"builds/{segment(self.id)}{rest}")


class Builds:
    """The builds of a workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, build_id: str) -> Build:
        """Read a build."""
        return Build(id=build_id, session=self._session).refresh()

    def list(
        self,
        *,
        configuration_id: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Build]:
        """List builds that match all filters, newest first."""
        query = filters(configuration_id=configuration_id, status=status)
        path, policy = self._session.path("builds"), self._session.policy
        return self._session.iterate(every(path, policy, self._build, query, limit))

    def _build(self, body: Mapping[str, Any]) -> Build:
        return Build.of(body, session=self._session)
