"""The client for asyncio: one server, one key, one workspace."""

from __future__ import annotations

from typing import Any, Self

from ade.client.aio.builds import AsyncBuilds
from ade.client.aio.cells import AsyncCells
from ade.client.aio.configurations import AsyncConfigurations
from ade.client.aio.directory import AsyncKeys, AsyncWorkspaces
from ade.client.aio.documents import AsyncDocuments
from ade.client.aio.driver import AsyncSession
from ade.client.aio.jobs import AsyncJobs
from ade.client.aio.runs import AsyncRuns
from ade.client.aio.targets import AsyncTargets
from ade.client.answers.directory import Caller, Health
from ade.client.core.exchange import call_json, request_of
from ade.client.core.retry import RetryPolicy
from ade.client.profiles import connection

TIMEOUT_SECONDS = 30.0


class AsyncClient:
    """Call one server about one workspace, with asyncio.

    Without arguments, `ADE_URL`, `ADE_API_KEY` and `ADE_WORKSPACE` count, then the profile that
    `ade login` made. `timeout_seconds` is how long any answer may take to begin or to go on, not
    how long jobs may take. `retry` says how often, and for how long, requests are sent again.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        workspace: str | None = None,
        *,
        profile: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retry: RetryPolicy | None = None,
    ) -> None:
        named = connection(url, api_key, workspace, profile)
        session = AsyncSession(named, retry or RetryPolicy(), timeout_seconds)
        self._session = session
        self.jobs = AsyncJobs(session)
        self.documents = AsyncDocuments(session)
        self.configurations = AsyncConfigurations(session)
        self.runs = AsyncRuns(session, self.documents, self.configurations)
        self.cells = AsyncCells(self.jobs, self.documents)
        self.targets = AsyncTargets(session)
        self.builds = AsyncBuilds(session)
        self.keys = AsyncKeys(session)
        self.workspaces = AsyncWorkspaces(session)

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return self._session.connection.url

    @property
    def workspace(self) -> str:
        """Return the workspace that the client works in."""
        return self._session.connection.workspace

    async def me(self) -> Caller:
        """Read whose key it is, and what it may do."""
        return Caller.of(await self._get("/api/v1/me"))

    async def health(self) -> Health:
        """Read how the server is."""
        return Health.of(await self._get("/api/v1/health"))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        """Return the client; its connections are closed at the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.close()

    async def _get(self, path: str) -> Any:
        request = request_of("GET", path)
        return await self._session.run(call_json(request, self._session.policy))
