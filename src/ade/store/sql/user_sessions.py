"""The statements on the sessions of browsers, and on the one-time links that begin them."""

from typing import Any

from sqlalchemy import Select, delete, select, update
from sqlalchemy.sql.base import Executable

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import api_keys, login_links, sessions, users
from ade.store.sql.clauses import insert_values, same

SESSION = tuple(sessions.c.keys())
LINK = tuple(column.name for column in login_links.c if column.name != "used_at")


def insert_session(d: Dialect, p: Parameters) -> Executable:
    """Insert a session."""
    return insert_values(p, sessions, {name: p[name] for name in SESSION})


def find_session(d: Dialect, p: Parameters) -> Executable:
    """Find a session that has not expired and whose key is valid, with what the key allows."""
    key = api_keys.c
    return (
        _sessions()
        .add_columns(users.c.operator, key.workspace_id, key.role)
        .join(api_keys, sessions.c.key_id == key.id)
        .where(
            same(sessions, p, "digest"), sessions.c.expires_at > p["now"], key.revoked_at.is_(None)
        )
    )


def find_session_by_id(d: Dialect, p: Parameters) -> Executable:
    """Find a session by its id, also an expired one."""
    return _sessions().where(same(sessions, p, "id"))


def touch_session(d: Dialect, p: Parameters) -> Executable:
    """Record that a session is in use, unless that was recorded a moment ago."""
    return (
        update(sessions)
        .where(same(sessions, p, "id"), sessions.c.last_seen_at <= p["at"])
        .values(last_seen_at=p["last_seen_at"], expires_at=p["expires_at"])
    )


def list_sessions(d: Dialect, p: Parameters) -> Executable:
    """List the sessions of everybody, newest first."""
    return _newest_first(d, p, _sessions())


def list_sessions_of_user(d: Dialect, p: Parameters) -> Executable:
    """List the sessions of a user, newest first."""
    return _newest_first(d, p, _sessions().where(same(sessions, p, "user_id")))


def list_sessions_of_key(d: Dialect, p: Parameters) -> Executable:
    """List the sessions that began with a key, newest first."""
    return _newest_first(d, p, _sessions().where(same(sessions, p, "key_id")))


def least_idle_sessions(d: Dialect, p: Parameters) -> Executable:
    """List the ids of a key's sessions, those that were used last first."""
    of_key = select(sessions.c.id).where(same(sessions, p, "key_id"))
    return of_key.order_by(sessions.c.last_seen_at.desc(), sessions.c.id.desc())


def expired_sessions(d: Dialect, p: Parameters) -> Executable:
    """Find sessions that have expired."""
    over = select(sessions.c.id).where(sessions.c.expires_at <= p["now"])
    return d.limited(over.order_by(sessions.c.expires_at), p["limit"])


def delete_sessions(d: Dialect, p: Parameters) -> Executable:
    """Delete sessions by their ids."""
    return delete(sessions).where(d.one_of(sessions.c.id, "ids"))


def delete_session_by_digest(d: Dialect, p: Parameters) -> Executable:
    """Delete the session of a token."""
    return delete(sessions).where(same(sessions, p, "digest"))


def delete_sessions_of_user(d: Dialect, p: Parameters) -> Executable:
    """Delete the sessions of a user."""
    return delete(sessions).where(same(sessions, p, "user_id"))


def delete_sessions_of_key(d: Dialect, p: Parameters) -> Executable:
    """Delete the sessions that began with a key."""
    return delete(sessions).where(same(sessions, p, "key_id"))


def insert_link(d: Dialect, p: Parameters) -> Executable:
    """Insert a one-time link."""
    return insert_values(p, login_links, {name: p[name] for name in LINK})


def find_link(d: Dialect, p: Parameters) -> Executable:
    """Find a one-time link of a valid key, also a used or expired one."""
    link = login_links.c
    return (
        select(link.id, link.key_id, api_keys.c.digest, link.expires_at, link.used_at)
        .select_from(login_links.join(api_keys, link.key_id == api_keys.c.id))
        .where(same(login_links, p, "digest"), api_keys.c.revoked_at.is_(None))
    )


def use_link(d: Dialect, p: Parameters) -> Executable:
    """Use a one-time link, unless somebody has used it."""
    unused = same(login_links, p, "id"), login_links.c.used_at.is_(None)
    return update(login_links).where(*unused).values(used_at=p["used_at"])


def newest_links(d: Dialect, p: Parameters) -> Executable:
    """List the ids of a key's links, newest first."""
    of_key = select(login_links.c.id).where(same(login_links, p, "key_id"))
    return of_key.order_by(login_links.c.id.desc())


def expired_links(d: Dialect, p: Parameters) -> Executable:
    """Find links that have expired."""
    over = select(login_links.c.id).where(login_links.c.expires_at <= p["now"])
    return d.limited(over.order_by(login_links.c.expires_at), p["limit"])


def delete_links(d: Dialect, p: Parameters) -> Executable:
    """Delete links by their ids."""
    return delete(login_links).where(d.one_of(login_links.c.id, "ids"))


def delete_links_of_key(d: Dialect, p: Parameters) -> Executable:
    """Delete the links of a key."""
    return delete(login_links).where(same(login_links, p, "key_id"))


def _sessions() -> Select[Any]:
    held = sessions.c
    return select(
        held.id,
        held.user_id,
        users.c.name,
        held.key_id,
        held.client,
        held.created_at,
        held.last_seen_at,
        held.expires_at,
    ).select_from(sessions.join(users, held.user_id == users.c.id))


def _newest_first(d: Dialect, p: Parameters, query: Select[Any]) -> Executable:
    valid = query.where(sessions.c.expires_at > p["now"])
    return d.limited(valid.order_by(sessions.c.id.desc()), p["limit"])
