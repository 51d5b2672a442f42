"""The statements on workspaces, users, members, API keys and shared secrets."""

from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import api_keys, members, secrets, users, workspaces
from ade.store.statements.parts import insert_values, same

USER = tuple(users.c.keys())
MEMBER = tuple(members.c.keys())
KEY = tuple(column.name for column in api_keys.c if column.name != "revoked_at")
SECRET = tuple(secrets.c.keys())


def insert_workspace(d: Dialect, g: Given) -> Executable:
    """Insert a workspace."""
    return insert_values(g, workspaces, {name: g[name] for name in rows.Workspace._fields})


def find_workspace(d: Dialect, g: Given) -> Executable:
    """Find a workspace by its id."""
    return select(workspaces).where(same(workspaces, g, "id"))


def find_workspace_by_slug(d: Dialect, g: Given) -> Executable:
    """Find a workspace by its slug."""
    return select(workspaces).where(same(workspaces, g, "slug"))


def list_workspaces(d: Dialect, g: Given) -> Executable:
    """List workspaces by slug."""
    return d.limited(select(workspaces).order_by(workspaces.c.slug), g["limit"])


def insert_user(d: Dialect, g: Given) -> Executable:
    """Insert a user."""
    return insert_values(g, users, {name: g[name] for name in USER})


def find_user(d: Dialect, g: Given) -> Executable:
    """Find a user by name."""
    return select(users.c.id).where(same(users, g, "name"))


def insert_member(d: Dialect, g: Given) -> Executable:
    """Give a user a role in a workspace."""
    return insert_values(g, members, {name: g[name] for name in MEMBER})


def change_role(d: Dialect, g: Given) -> Executable:
    """Give a member another role."""
    return update(members).where(same(members, g, "workspace_id", "user_id")).values(role=g["role"])


def delete_member(d: Dialect, g: Given) -> Executable:
    """Take a user's role in a workspace."""
    return delete(members).where(same(members, g, "workspace_id", "user_id"))


def find_member(d: Dialect, g: Given) -> Executable:
    """Find a member of a workspace."""
    return _members().where(same(members, g, "workspace_id", "user_id"))


def list_members(d: Dialect, g: Given) -> Executable:
    """List the members of a workspace by name."""
    found = _members().where(same(members, g, "workspace_id")).order_by(users.c.name)
    return d.limited(found, g["limit"])


def list_roles(d: Dialect, g: Given) -> Executable:
    """List the roles of a user by workspace."""
    return select(members.c.workspace_id, members.c.role).where(same(members, g, "user_id"))


def insert_key(d: Dialect, g: Given) -> Executable:
    """Insert an API key."""
    return insert_values(g, api_keys, {name: g[name] for name in KEY})


def count_keys(d: Dialect, g: Given) -> Executable:
    """Count the API keys, also revoked ones."""
    return select(func.count(api_keys.c.id))


def find_key_holder(d: Dialect, g: Given) -> Executable:
    """Find the user that a valid API key authenticates."""
    key = api_keys.c
    return (
        select(key.id, users.c.id, users.c.name, users.c.operator, key.workspace_id, key.role)
        .select_from(api_keys.join(users, key.user_id == users.c.id))
        .where(same(api_keys, g, "digest"), key.revoked_at.is_(None))
    )


def find_key_by_digest(d: Dialect, g: Given) -> Executable:
    """Find an API key by its digest, also a revoked one."""
    return select(api_keys.c.id).where(same(api_keys, g, "digest"))


def find_key(d: Dialect, g: Given) -> Executable:
    """Find an API key of a workspace by its id."""
    return _keys().where(same(api_keys, g, "workspace_id", "id"))


def list_keys(d: Dialect, g: Given) -> Executable:
    """List the API keys of a workspace, newest first."""
    newest_first = _keys().where(same(api_keys, g, "workspace_id")).order_by(api_keys.c.id.desc())
    return d.limited(newest_first, g["limit"])


def revoke_key(d: Dialect, g: Given) -> Executable:
    """Revoke an API key of a workspace, unless it is revoked already."""
    valid = same(api_keys, g, "workspace_id", "id"), api_keys.c.revoked_at.is_(None)
    return update(api_keys).where(*valid).values(revoked_at=g["revoked_at"])


def insert_secret(d: Dialect, g: Given) -> Executable:
    """Insert a secret that all servers share."""
    return insert_values(g, secrets, {name: g[name] for name in SECRET})


def find_secret(d: Dialect, g: Given) -> Executable:
    """Find a secret that all servers share."""
    return select(secrets.c.value).where(same(secrets, g, "name"))


def _members() -> Select[Any]:
    return select(
        members.c.user_id, users.c.name, members.c.role, members.c.created_at
    ).select_from(members.join(users, members.c.user_id == users.c.id))


def _keys() -> Select[Any]:
    key = api_keys.c
    return select(
        key.id, key.label, key.role, key.user_id, users.c.name, key.created_at, key.revoked_at
    ).select_from(api_keys.join(users, key.user_id == users.c.id))
