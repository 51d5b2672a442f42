"""Workspaces, members and keys as the API shows them, and the bodies that create them."""

from typing import Annotated, Literal, cast

from pydantic import StringConstraints
from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.http.schemas.body import RequestModel, Text, Time, Uuid, optional_time
from ade.store.rows import ApiKey, Member, NewKey, Workspace

RoleName = Literal["viewer", "editor", "admin"]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


class WorkspaceRequest(RequestModel):
    """A workspace to create."""

    slug: Slug
    name: Text


class WorkspaceBody(TypedDict):
    """A tenant."""

    workspace_id: Uuid
    slug: str
    name: str
    role: RoleName
    created_at: Time


class WorkspacePage(TypedDict):
    """The workspaces that the key may see."""

    items: list[WorkspaceBody]
    next_cursor: None


class MemberRequest(RequestModel):
    """A user and its role; an unknown name becomes a new user."""

    name: Text
    role: RoleName


class MemberBody(TypedDict):
    """A user's role in a workspace."""

    user_id: Uuid
    name: str
    role: RoleName
    created_at: Time


class MemberPage(TypedDict):
    """The members of a workspace."""

    items: list[MemberBody]
    next_cursor: None


class KeyRequest(RequestModel):
    """A key to create: for the caller, or for another member."""

    label: Text
    role: RoleName = "editor"
    user_id: Text | None = None


class OperatorKeyRequest(RequestModel):
    """An operator's key to create, of the caller."""

    label: Text


class KeyBody(TypedDict):
    """What may be known of a key after it was shown."""

    key_id: Uuid
    label: str
    role: RoleName | None
    user_id: Uuid
    user_name: str
    created_at: Time
    revoked_at: Time | None


class KeyMade(KeyBody):
    """A key, in the only answer that shows it."""

    key: str


class KeyPage(TypedDict):
    """The keys of a workspace, newest first."""

    items: list[KeyBody]
    next_cursor: None


def workspace_body(workspace: Workspace, role: str) -> WorkspaceBody:
    """Show a workspace, and the caller's role in it."""
    return {
        "workspace_id": workspace.id,
        "slug": workspace.slug,
        "name": workspace.name,
        "role": cast(RoleName, role),
        "created_at": rfc3339(workspace.created_at),
    }


def member_body(member: Member) -> MemberBody:
    """Show a member."""
    return {
        "user_id": member.user_id,
        "name": member.name,
        "role": cast(RoleName, member.role),
        "created_at": rfc3339(member.created_at),
    }


def key_body(key: ApiKey) -> KeyBody:
    """Show a key without its secret."""
    return {
        "key_id": key.id,
        "label": key.label,
        "role": cast(RoleName | None, key.role),
        "user_id": key.user_id,
        "user_name": key.user_name,
        "created_at": rfc3339(key.created_at),
        "revoked_at": optional_time(key.revoked_at),
    }


def new_key_body(made: NewKey) -> KeyMade:
    """Show a new key with its secret."""
    return {**key_body(made.key), "key": made.secret}
