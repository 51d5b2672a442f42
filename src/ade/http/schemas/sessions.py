"""Sessions of browsers as the API shows them, and who sends a request."""

from collections.abc import Iterable

from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.http.auth import Principal, Role
from ade.http.schemas.body import Time, Uuid
from ade.http.schemas.directory import RoleName, WorkspaceBody, workspace_body
from ade.store.rows import UserSession, Workspace


class UserBody(TypedDict):
    """A user."""

    user_id: Uuid
    name: str
    operator: bool


class SessionBody(TypedDict):
    """A browser that has signed in."""

    session_id: Uuid
    user_id: Uuid
    user_name: str
    key_id: Uuid
    client: str
    created_at: Time
    last_seen_at: Time
    expires_at: Time
    current: bool


class SessionPage(TypedDict):
    """Sessions, newest first."""

    items: list[SessionBody]
    next_cursor: None


class OwnSession(TypedDict):
    """The session of the browser that sends the request, with its CSRF token."""

    session_id: Uuid
    user: UserBody
    roles: dict[str, RoleName]
    csrf_token: str
    created_at: Time
    expires_at: Time


class Me(TypedDict):
    """Who sends the request, and what they may do."""

    user: UserBody
    workspaces: list[WorkspaceBody]
    key_id: Uuid
    session_id: Uuid | None


def session_body(session: UserSession, principal: Principal) -> SessionBody:
    """Show a session, and whether it is that of the request."""
    own = principal.session
    return {
        "session_id": session.id,
        "user_id": session.user_id,
        "user_name": session.user_name,
        "key_id": session.key_id,
        "client": session.client,
        "created_at": rfc3339(session.created_at),
        "last_seen_at": rfc3339(session.last_seen_at),
        "expires_at": rfc3339(session.expires_at),
        "current": own is not None and own.id == session.id,
    }


def own_session(
    session: UserSession, principal: Principal, workspaces: Iterable[Workspace], csrf: str
) -> OwnSession:
    """Show the session of a request."""
    visible = _visible(principal, workspaces)
    return {
        "session_id": session.id,
        "user": _user(principal),
        "roles": {workspace["slug"]: workspace["role"] for workspace in visible},
        "csrf_token": csrf,
        "created_at": rfc3339(session.created_at),
        "expires_at": rfc3339(session.expires_at),
    }


def me(principal: Principal, workspaces: Iterable[Workspace]) -> Me:
    """Show who sends a request."""
    return {
        "user": _user(principal),
        "workspaces": _visible(principal, workspaces),
        "key_id": principal.holder.key_id,
        "session_id": principal.session.id if principal.session else None,
    }


def _user(principal: Principal) -> UserBody:
    held = principal.holder
    return {"user_id": held.user_id, "name": held.user_name, "operator": principal.operator}


def _visible(principal: Principal, workspaces: Iterable[Workspace]) -> list[WorkspaceBody]:
    roles = [(workspace, principal.role_in(workspace.id)) for workspace in workspaces]
    return [workspace_body(workspace, role.label) for workspace, role in roles if role > Role.NONE]
