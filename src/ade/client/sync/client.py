# Written from ade/client/aio/client.py by scripts/write_sync_client.py; edit that instead.
"""The client for ordinary programs: one server, one key, one workspace."""

from __future__ import annotations

from typing import Any, Self

from ade.client.answers.directory import Caller, Health
from ade.client.core.exchange import call_json, request_of
from ade.client.core.retry import RetryPolicy
from ade.client.profiles import connection
from ade.client.sync.builds import Builds
from ade.client.sync.cells import Cells
from ade.client.sync.configurations import Configurations
from ade.client.sync.directory import Keys, Workspaces
from ade.client.sync.documents import Documents
from ade.client.sync.driver import Session
from ade.client.sync.jobs import Jobs
from ade.client.sync.runs import Runs
from ade.client.sync.targets import Targets

TIMEOUT_SECONDS = 30.0


class Client:
    """Call one server about one workspace; threads may share it.

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
        session = Session(named, retry or RetryPolicy(), timeout_seconds)
        self._session = session
        self.jobs = Jobs(session)
        self.documents = Documents(session)
        self.configurations = Configurations(session)
        self.runs = Runs(session, self.documents, self.configurations)
        self.cells = Cells(self.jobs, self.documents)
        self.targets = Targets(session)
        self.builds = Builds(session)
        self.keys = Keys(session)
        self.workspaces = Workspaces(session)

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return self._session.connection.url

    @property
    def workspace(self) -> str:
        """Return the workspace that the client works in."""
        return self._session.connection.workspace

    def me(self) -> Caller:
        """Read whose key it is, and what it may do."""
        return Caller.of(self._get("/api/v1/me"))

    def health(self) -> Health:
        """Read how the server is."""
        return Health.of(self._get("/api/v1/health"))

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def __enter__(self) -> Self:
        """Return the client; its connections are closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def _get(self, path: str) -> Any:
        request = request_of("GET", path)
        return self._session.run(call_json(request, self._session.policy))
