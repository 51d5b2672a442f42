"""The statements on workspaces, users, members, API keys and shared secrets."""

from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import api_keys, members, secrets, users, workspaces
from ade.store.sql.clauses import insert_values, same

USER = tuple(users.c.keys())
MEMBER = tuple(members.c.keys())
KEY = tuple(column.name for column in api_keys.c if column.name != "revoked_at")
SECRET = tuple(secrets.c.keys())


def insert_workspace(d: Dialect, p: Parameters) -> Executable:
    """Insert a workspace."""
    return insert_values(p, workspaces, {name: p[name] for name in rows.Workspace._fields})


def find_workspace(d: Dialect, p: Parameters) -> Executable:
    """Find a workspace by its id."""
    return select(workspaces).where(same(workspaces, p, "id"))


def find_workspace_by_slug(d: Dialect, p: Parameters) -> Executable:
    """Find a workspace by its slug."""
    return select(workspaces).where(same(workspaces, p, "slug"))


def list_workspaces(d: Dialect, p: Parameters) -> Executable:
    """List workspaces by slug."""
    return d.limited(select(workspaces).order_by(workspaces.c.slug), p["limit"])


def insert_user(d: Dialect, p: Parameters) -> Executable:
    """Insert a user."""
    return insert_values(p, users, {name: p[name] for name in USER})


def find_user(d: Dialect, p: Parameters) -> Executable:
    """Find a user by name."""
    return select(users.c.id).where(same(users, p, "name"))


def insert_member(d: Dialect, p: Parameters) -> Executable:
    """Give a user a role in a workspace."""
    return insert_values(p, members, {name: p[name] for name in MEMBER})


def change_role(d: Dialect, p: Parameters) -> Executable:
    """Give a member another role."""
    return update(members).where(same(members, p, "workspace_id", "user_id")).values(role=p["role"])


def delete_member(d: Dialect, p: Parameters) -> Executable:
    """Take a user's role in a workspace."""
    return delete(members).where(same(members, p, "workspace_id", "user_id"))


def find_member(d: Dialect, p: Parameters) -> Executable:
    """Find a member of a workspace."""
    return _members().where(same(members, p, "workspace_id", "user_id"))


def list_members(d: Dialect, p: Parameters) -> Executable:
    """List the members of a workspace by name."""
    found = _members().where(same(members, p, "workspace_id")).order_by(users.c.name)
    return d.limited(found, p["limit"])


def list_roles(d: Dialect, p: Parameters) -> Executable:
    """List the roles of a user by workspace."""
    return select(members.c.workspace_id, members.c.role).where(same(members, p, "user_id"))


def insert_key(d: Dialect, p: Parameters) -> Executable:
    """Insert an API key."""
    return insert_values(p, api_keys, {name: p[name] for name in KEY})


def count_keys(d: Dialect, p: Parameters) -> Executable:
    """Count the API keys, also revoked ones."""
    return select(func.count(api_keys.c.id))


def find_key_holder(d: Dialect, p: Parameters) -> Executable:
    """Find the user that a valid API key authenticates."""
    key = api_keys.c
    return (
        select(key.id, users.c.id, users.c.name, users.c.operator, key.workspace_id, key.role)
        .select_from(api_keys.join(users, key.user_id == users.c.id))
        .where(same(api_keys, p, "digest"), key.revoked_at.is_(None))
    )


def find_key_by_digest(d: Dialect, p: Parameters) -> Executable:
    """Find an API key by its digest, also a revoked one."""
    return select(api_keys.c.id).where(same(api_keys, p, "digest"))


def find_key(d: Dialect, p: Parameters) -> Executable:
    """Find an API key of a workspace by its id."""
    return _keys().where(same(api_keys, p, "workspace_id", "id"))


def list_keys(d: Dialect, p: Parameters) -> Executable:
    """List the API keys of a workspace, newest first."""
    newest_first = _keys().where(same(api_keys, p, "workspace_id")).order_by(api_keys.c.id.desc())
    return d.limited(newest_first, p["limit"])


def revoke_key(d: Dialect, p: Parameters) -> Executable:
    """Revoke an API key of a workspace, unless it is revoked already."""
    valid = same(api_keys, p, "workspace_id", "id"), api_keys.c.revoked_at.is_(None)
    return update(api_keys).where(*valid).values(revoked_at=p["revoked_at"])


def find_operator_key(d: Dialect, p: Parameters) -> Executable:
    """Find an API key that belongs to no workspace."""
    return _keys().where(same(api_keys, p, "id"), api_keys.c.workspace_id.is_(None))


def list_operator_keys(d: Dialect, p: Parameters) -> Executable:
    """List the API keys that belong to no workspace, newest first."""
    newest_first = _keys().where(api_keys.c.workspace_id.is_(None)).order_by(api_keys.c.id.desc())
    return d.limited(newest_first, p["limit"])


def lock_operator_keys(d: Dialect, p: Parameters) -> Executable:
    """Find the valid API keys that belong to no workspace, and keep others from revoking them."""
    valid = api_keys.c.workspace_id.is_(None), api_keys.c.revoked_at.is_(None)
    return d.locked(select(api_keys.c.id).where(*valid).order_by(api_keys.c.id), api_keys)


def revoke_operator_key(d: Dialect, p: Parameters) -> Executable:
    """Revoke an API key that belongs to no workspace, unless it is revoked already."""
    valid = api_keys.c.workspace_id.is_(None), api_keys.c.revoked_at.is_(None)
    found = update(api_keys).where(same(api_keys, p, "id"), *valid)
    return found.values(revoked_at=p["revoked_at"])


def insert_secret(d: Dialect, p: Parameters) -> Executable:
    """Insert a secret that all servers share."""
    return insert_values(p, secrets, {name: p[name] for name in SECRET})


def delete_secret(d: Dialect, p: Parameters) -> Executable:
    """Delete a secret."""
    return delete(secrets).where(same(secrets, p, "name"))


def find_secret(d: Dialect, p: Parameters) -> Executable:
    """Find a secret that all servers share."""
    return select(secrets.c.value).where(same(secrets, p, "name"))


def _members() -> Select[Any]:
    return select(
        members.c.user_id, users.c.name, members.c.role, members.c.created_at
    ).select_from(members.join(users, members.c.user_id == users.c.id))


def _keys() -> Select[Any]:
    key = api_keys.c
    return select(
        key.id, key.label, key.role, key.user_id, users.c.name, key.created_at, key.revoked_at
    ).select_from(api_keys.join(users, key.user_id == users.c.id))
