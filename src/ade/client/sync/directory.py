# Written from ade/client/aio/directory.py by scripts/write_sync_client.py; edit that instead.
"""Keys, workspaces and the caller."""

from __future__ import annotations

from typing import Any

from ade.client.answers.directory import Key, Workspace
from ade.client.core.exchange import call_json, request_of
from ade.client.core.names import segment
from ade.client.core.submission import given
from ade.client.sync.driver import Session

WORKSPACES = "/api/v1/workspaces"


class Keys:
    """The API keys of a workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Key]:
        """List the keys, newest first; what they are is not shown again."""
        found = self._call("GET", self._session.path("keys"))
        return [Key.of(one) for one in found["items"]]

    def create(self, label: str, *, role: str | None = None, user_id: str | None = None) -> Key:
        """Make a key for the caller, or for another member; `secret` is the key itself."""
        body = given(label=label, role=role, user_id=user_id)
        return Key.of(self._call("POST", self._session.path("keys"), body))

    def revoke(self, key_id: str) -> Key:
        """Revoke a key; it stops working at once."""
        return Key.of(self._call("DELETE", self._session.path(f"keys/{segment(key_id)}")))

    def _call(self, method: Any, path: str, body: Any = None) -> Any:
        request = request_of(method, path, json_body=body)
        return self._session.run(call_json(request, self._session.policy))


class Workspaces:
    """The workspaces that the key may see."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Workspace]:
        """List them."""
        return [Workspace.of(one) for one in (self._call("GET", WORKSPACES))["items"]]

    def get(self, slug_or_id: str | None = None) -> Workspace:
        """Read a workspace, by default that of the client."""
        name = slug_or_id or self._session.connection.workspace
        return Workspace.of(self._call("GET", f"{WORKSPACES}/{segment(name)}"))

    def create(self, slug: str, name: str | None = None) -> Workspace:
        """Make a workspace; the caller becomes its admin."""
        body = {"slug": slug, "name": name or slug}
        return Workspace.of(self._call("POST", WORKSPACES, body))

    def _call(self, method: Any, path: str, body: Any = None) -> Any:
        request = request_of(method, path, json_body=body)
        return self._session.run(call_json(request, self._session.policy))
