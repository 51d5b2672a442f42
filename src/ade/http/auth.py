"""Authenticate requests by API key or session, and authorize them by role.

A key comes as Bearer or as the password of HTTP Basic. A browser that has signed in sends the
cookie of its session instead, which allows what the key that it began with allows. Roles of a
workspace are viewer < editor < admin; an operator is admin everywhere and may make workspaces.
A key that belongs to a workspace works there only, and never allows more than its user may.

The rule about time. What the database says of a key or session is cached for two seconds, so that
a busy client costs microseconds and not a query per request. A key that was revoked, a session that
was ended or has expired, or a role that was removed may therefore work for up to two seconds more
in other server processes; the process that made the change clears its cache.

    what is wrong                             the answer
    ----------------------------------------  ------------------------------------------
    no key, or an unknown one                 401
    many unknown ones from one address        429 (see `wrong_keys`)
    a workspace that the key has no role in   404: its existence is not disclosed
    a role that is too low                    403
    the cookie of a session that has ended    401 session_ended
    a cookie sent by another site's page      403 (SameSite stops it; see `ade.http.csrf`)
"""

import base64
import binascii
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.types import Scope

from ade.app.directory import Directory
from ade.app.user_sessions import UserSessions
from ade.domain.errors import Forbidden, NotFound, SessionEnded, Unauthenticated, Unavailable
from ade.http.csrf import check_csrf_token, check_origin, csrf_header
from ade.http.query import check_parameters
from ade.http.session_cookie import SessionCookie
from ade.store.rows import KeyHolder, UserSession, Workspace

KEY_CACHE_SECONDS = 2.0
KEYS_REMEMBERED_MAX = 4096
WORKSPACES_REMEMBERED_MAX = 4096
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
NO_KEY = "Send an API key: Authorization: Bearer <key>."
NOT_VALID = "This API key is not valid."
SESSION_ENDED = "Your session has ended. Sign in again at /login."


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
    """Identify who sends a request, and by which session if it comes from a browser."""

    holder: KeyHolder
    session: UserSession | None = None

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
        self,
        directory: Directory,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        sessions: UserSessions | None = None,
        cookie: SessionCookie | None = None,
        on_wrong_key: Callable[[Scope], None] = lambda _: None,
    ) -> None:
        self._on_wrong_key = on_wrong_key
        self._directory = directory
        self._sessions = sessions or directory.user_sessions()
        self._cookie = cookie or SessionCookie()
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, Principal]] = {}
        self._unknown: dict[bytes, float] = {}
        self._workspaces: dict[str, Workspace] = {}

    async def principal(self, scope: Scope) -> Principal:
        """Find who sends a request, or raise Unauthenticated, or why it may not try again."""
        found = await self._principal(scope)
        scope.setdefault("state", {})["key_id"] = found.holder.key_id
        return found

    async def _principal(self, scope: Scope) -> Principal:
        key = key_in(scope)
        if key is not None:
            return await self.principal_of_request(scope, key)
        token = self._cookie.read(scope)
        if not token:
            raise Unauthenticated(NO_KEY)
        if scope["method"] in SAFE_METHODS:
            return await self.principal_of_session(token)
        check_origin(scope, self._cookie.origins(scope))
        principal = await self.principal_of_session(token)
        check_csrf_token(csrf_header(scope), token)
        return principal

    async def principal_of_request(self, scope: Scope, secret: str) -> Principal:
        """Find the principal of a key, and count a wrong one against the sender's address."""
        try:
            return await self.principal_of(secret)
        except Unauthenticated:
            self._on_wrong_key(scope)
            raise

    async def principal_of(self, secret: str) -> Principal:
        """Find the principal of a key; query the database at most every two seconds."""
        found = await self._cached(b"key", secret, self._find_key)
        if found is None:
            raise Unauthenticated(NOT_VALID)
        return found

    async def principal_of_session(self, token: str) -> Principal:
        """Find the principal of a session's token; the caller checks where the request is from."""
        found = await self._cached(b"session", token, self._find_session)
        if found is None:
            raise SessionEnded(SESSION_ENDED)
        return found

    async def _cached(
        self, kind: bytes, secret: str, find: Callable[[str], Awaitable[Principal | None]]
    ) -> Principal | None:
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass"))
        name = kind + digest.digest()  # so that a session's token never passes for a key
        now = self._monotonic()
        kept = self._known.get(name)
        if kept is not None and now < kept[0]:
            return kept[1]
        if self._unknown.get(name, 0.0) > now:
            return None
        principal = await find("sha256:" + digest.hexdigest())
        until = now + KEY_CACHE_SECONDS
        if principal is None:
            self._known.pop(name, None)
            _bound(self._unknown, KEYS_REMEMBERED_MAX)
            self._unknown[name] = until
            return None
        _bound(self._known, KEYS_REMEMBERED_MAX)
        self._known[name] = (until, principal)
        return principal

    async def _find_key(self, digest: str) -> Principal | None:
        holder = await self._directory.find_key(digest)
        return None if holder is None else Principal(holder)

    async def _find_session(self, digest: str) -> Principal | None:
        """Find a session, and record now and then that it is in use."""
        found = await self._sessions.find(digest)
        if found is None:
            return None
        session, holder = found
        if self._sessions.is_due(session):
            try:
                touched = await self._sessions.touch(session)
            except Unavailable:
                touched = session  # what can be read stays readable while nothing can be written
            if touched is None:
                return None
            session = touched
        return Principal(holder, session)

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
        scope["state"]["workspace_id"] = found.id
        return Authorization(principal, found, role)

    async def _authorize_route(self, request: Request, ws: str, needed: Role) -> Authorization:
        """Authorize a request; only then say which of its query parameters do not exist."""
        found = await self.authorize(request.scope, ws, needed)
        check_parameters(request)
        return found

    async def operator(self, request: Request) -> Principal:
        """Require an operator's key."""
        principal = await self.principal(request.scope)
        if not principal.operator:
            raise Forbidden("This needs an operator's key.")
        check_parameters(request)
        return principal

    async def anyone(self, request: Request) -> Principal:
        """Require any valid key."""
        principal = await self.principal(request.scope)
        check_parameters(request)
        return principal

    async def viewer(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role viewer, which may read."""
        return await self._authorize_route(request, ws, Role.VIEWER)

    async def editor(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role editor, which may run and stop jobs."""
        return await self._authorize_route(request, ws, Role.EDITOR)

    async def admin(self, request: Request, ws: "WorkspaceName") -> Authorization:
        """Require the role admin, which manages members and keys."""
        return await self._authorize_route(request, ws, Role.ADMIN)


WorkspaceName = Annotated[str, Path(description="slug or id of the workspace")]


def key_in(scope: Scope) -> str | None:
    """Find the API key that a request carries; raise Unauthenticated if it is malformed."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return _authorization(value)
    return None


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


def _bound(kept: dict[Any, Any], most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
