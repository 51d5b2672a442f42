"""Authenticate requests by API key, and authorize them by role.

A key comes as Bearer, as the password of HTTP Basic, or in the console's cookie. Roles of a
workspace are viewer < editor < admin; an operator is admin everywhere and may make workspaces.
A key that belongs to a workspace works there only, and never allows more than its user may.

The rule about time. What the database says of a key is cached for two seconds, so that a busy
client costs microseconds and not a query per request. A revoked key, or a role that was removed,
may therefore work for up to two seconds more in other server processes; the process that revoked
it clears its cache.

    what is wrong                             the answer
    ----------------------------------------  ------------------------------------------
    no key, or an unknown one                 401
    a workspace that the key has no role in   404: its existence is not disclosed
    a role that is too low                    403
    a cookie sent by another site's page      403 (SameSite stops it; the Origin is checked too)
"""

import base64
import binascii
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from http.cookies import CookieError, SimpleCookie
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.types import Scope

from ade.app.directory import Directory
from ade.domain.errors import Forbidden, NotFound, Unauthenticated
from ade.store.rows import KeyHolder, Workspace

COOKIE = "ade_session"
KEY_CACHE_SECONDS = 2.0
KEYS_REMEMBERED_MAX = 4096
WORKSPACES_REMEMBERED_MAX = 4096
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
NO_KEY = "Send an API key: Authorization: Bearer <key>."


class Role(IntEnum):
    """Name what a key may do in a workspace; a higher role includes the lower ones."""

    NONE = 0
    VIEWER = 1
    EDITOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """Return the role as the API writes it."""
        return self.name.lower()

    @staticmethod
    def named(name: str | None) -> "Role":
        """Return a stored role."""
        return Role[name.upper()] if name else Role.NONE


@dataclass(frozen=True, slots=True)
class Principal:
    """Identify who sends a request."""

    holder: KeyHolder

    @property
    def user_id(self) -> str:
        """Return the user's id."""
        return self.holder.user_id

    @property
    def operator(self) -> bool:
        """Tell whether this is an operator's key; one with its own workspace or role is not."""
        held = self.holder
        return held.operator and held.workspace_id is None and held.role is None

    def role_in(self, workspace_id: str) -> Role:
        """Return what the key may do in a workspace."""
        held = self.holder
        if held.workspace_id not in (None, workspace_id):
            return Role.NONE
        own = Role.ADMIN if held.operator else Role.named(held.roles.get(workspace_id))
        return own if held.role is None else min(own, Role.named(held.role))


@dataclass(frozen=True, slots=True)
class Authorization:
    """Hold who sends a request and the workspace that they may use, with their role there."""

    principal: Principal
    workspace: Workspace
    role: Role

    @property
    def user_id(self) -> str:
        """Return the user's id."""
        return self.principal.user_id


class Authenticator:
    """Find out who sends a request, and whether they may."""

    def __init__(
        self, directory: Directory, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._directory = directory
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, Principal]] = {}
        self._unknown: dict[bytes, float] = {}
        self._workspaces: dict[str, Workspace] = {}

    async def principal(self, scope: Scope) -> Principal:
        """Find who sends a request, or raise Unauthenticated."""
        return await self.principal_of(credential(scope))

    async def principal_of(self, secret: str) -> Principal:
        """Find the principal of a key; query the database at most every two seconds."""
        name = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        now = self._monotonic()
        kept = self._known.get(name)
        if kept is not None and now < kept[0]:
            return kept[1]
        if self._unknown.get(name, 0.0) > now:
            raise Unauthenticated("This API key is not valid.")
        holder = await self._directory.find_key("sha256:" + name.hex())
        until = now + KEY_CACHE_SECONDS
        if holder is None:
            self._known.pop(name, None)
            _bound(self._unknown, KEYS_REMEMBERED_MAX)
            self._unknown[name] = until
            raise Unauthenticated("This API key is not valid.")
        _bound(self._known, KEYS_REMEMBERED_MAX)
        principal = Principal(holder)
        self._known[name] = (until, principal)
        return principal

    def forget(self) -> None:
        """Clear the cache, after keys or roles were changed through this process."""
        self._known.clear()

    async def workspace(self, name: str) -> Workspace:
        """Find a workspace by slug or id; they never change, so they are cached."""
        found = self._workspaces.get(name) or await self._directory.find_workspace(name)
        if found is None:
            raise NotFound("There is no such workspace.")
        _bound(self._workspaces, WORKSPACES_REMEMBERED_MAX)
        self._workspaces[name] = found
        return found

    async def authorize(self, scope: Scope, workspace: str, needed: Role) -> Authorization:
        """Authorize a request for a workspace, or raise why it is not allowed."""
        principal = await self.principal(scope)
        found = await self.workspace(workspace)
        role = principal.role_in(found.id)
        if role is Role.NONE:
            raise NotFound("There is no such workspace.")
        if role < needed:
            raise Forbidden(f"This needs the role {needed.label}.")
        return Authorization(principal, found, role)

    async def operator(self, request: Request) -> Principal:
        """Require an operator's key."""
        principal = await self.principal(request.scope)
        if not principal.operator:
            raise Forbidden("This needs an operator's key.")
        return principal

    async def anyone(self, request: Request) -> Principal:
        """Require any valid key."""
        return await self.principal(request.scope)

    async def viewer(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role viewer, which may read."""
        return await self.authorize(request.scope, ws, Role.VIEWER)

    async def editor(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role editor, which may run and stop jobs."""
        return await self.authorize(request.scope, ws, Role.EDITOR)

    async def admin(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role admin, which manages members and keys."""
        return await self.authorize(request.scope, ws, Role.ADMIN)


WorkspaceName = Annotated[str, Path(description="slug or id of the workspace")]


def credential(scope: Scope) -> str:
    """Find the key that a request carries, or raise Unauthenticated."""
    cookie = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            return _authorization(value)
        if name == b"cookie" and COOKIE.encode() in value:
            cookie = value
    secret = _cookie(cookie) if cookie else ""
    if not secret:
        raise Unauthenticated(NO_KEY)
    if scope["method"] not in SAFE_METHODS and _comes_from_elsewhere(scope):
        raise Forbidden("The cookie of the console works on the console's own pages only.")
    return secret


def _authorization(value: bytes) -> str:
    scheme, _, rest = value.decode("latin-1").strip().partition(" ")
    secret = rest.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(secret, validate=True).decode("latin-1")
        except (binascii.Error, ValueError):
            decoded = ""
        secret = decoded.partition(":")[2]
    elif scheme.lower() != "bearer":
        secret = ""
    if not secret:
        raise Unauthenticated(NO_KEY)
    return secret


def _cookie(value: bytes) -> str:
    try:
        found = SimpleCookie(value.decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _comes_from_elsewhere(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    if origin is None:
        return False
    return bytes(origin.partition(b"://")[2]) != headers.get(b"host", b"")


def _bound(kept: dict[Any, Any], most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
