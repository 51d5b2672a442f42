"""The rows of workspaces, users, keys and sessions."""

from enum import Enum
from typing import NamedTuple


class Workspace(NamedTuple):
    """Hold a workspace."""

    id: str
    slug: str
    name: str
    created_at: int


class Member(NamedTuple):
    """Hold a user's role in a workspace."""

    user_id: str
    name: str
    role: str
    created_at: int


class ApiKey(NamedTuple):
    """Hold what is known of an API key: everything but its secret."""

    id: str
    label: str
    role: str | None
    user_id: str
    user_name: str
    created_at: int
    revoked_at: int | None


class KeyHolder(NamedTuple):
    """Hold the user that an API key authenticates, and what the key allows."""

    key_id: str
    user_id: str
    user_name: str
    operator: bool
    workspace_id: str | None
    role: str | None
    roles: dict[str, str]


class NewKey(NamedTuple):
    """Hold a new API key with its secret, which is shown once and never stored."""

    key: ApiKey
    secret: str


class UserSession(NamedTuple):
    """Hold what is known of a browser's session: everything but its token."""

    id: str
    user_id: str
    user_name: str
    key_id: str
    client: str
    created_at: int
    last_seen_at: int
    expires_at: int


class NewUserSession(NamedTuple):
    """Hold a new session with its token, which the browser gets and which is never stored."""

    session: UserSession
    token: str


class LinkState(Enum):
    """Tell whether a one-time link can be used."""

    USABLE = "usable"
    USED = "used"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
