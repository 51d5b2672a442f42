"""The statements about the agents that were enrolled, and their keys."""

from typing import Any

from sqlalchemy import Insert, Select, Update, func, null, select, update
from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import agents
from ade.store.sql.clauses import insert_values, same

ENROLLED = ("name", "labels", "key_digest", "code_digest", "code_expires_at", "created_at")
REPLACED = (
    "name",
    "key_digest",
    "code_digest",
    "code_expires_at",
    "old_key_expires_at",
    "rotated_at",
)
NO_CODE = {"code_digest": null(), "code_expires_at": null()}
NO_OLD_KEY = {"old_key_digest": null(), "old_key_expires_at": null()}


def _agents() -> Select[Any]:
    return select(*[agents.c[name] for name in rows.AgentRow._fields])


def insert_agent(d: Dialect, p: Parameters) -> Insert:
    """Insert an agent that is enrolled for the first time."""
    return insert_values(p, agents, {name: p[name] for name in rows.AgentRow._fields})


def count_agents(d: Dialect, p: Parameters) -> Executable:
    """Count the agents, also revoked ones."""
    return select(func.count(agents.c.id))


def find_agent(d: Dialect, p: Parameters) -> Executable:
    """Find an agent by its name, also a revoked one."""
    return _agents().where(same(agents, p, "name"))


def find_agent_by_key(d: Dialect, p: Parameters) -> Executable:
    """Find an agent by its key, unless the key was replaced."""
    return _agents().where(same(agents, p, "key_digest"))


def list_agents(d: Dialect, p: Parameters) -> Executable:
    """List agents by name, also revoked ones."""
    return d.limited(_agents().order_by(agents.c.name), p["limit"])


def enrol_agent_again(d: Dialect, p: Parameters) -> Update:
    """Give a revoked agent a key and a code."""
    changed = {name: p[name] for name in ENROLLED[1:]}
    anew = {name: null() for name in ("rotated_at", "revoked_at", "last_used_at")}
    revoked = same(agents, p, "name"), agents.c.revoked_at.is_not(None)
    return update(agents).where(*revoked).values(**changed, **anew)


def replace_agent_key(d: Dialect, p: Parameters) -> Update:
    """Give an agent another key and a code; the key that it has works a while longer."""
    changed = {name: p[name] for name in REPLACED[1:]}
    valid = same(agents, p, "name"), agents.c.revoked_at.is_(None)
    return update(agents).where(*valid).values(**changed, old_key_digest=agents.c.key_digest)


def trade_agent_code(d: Dialect, p: Parameters) -> Update:
    """Replace the key of the agent whose code it is; nobody can use the code again."""
    usable = same(agents, p, "code_digest"), agents.c.code_expires_at > p["now"]
    return update(agents).where(*usable).values(key_digest=p["key_digest"], **NO_CODE)


def revoke_agent(d: Dialect, p: Parameters) -> Update:
    """Take an agent's keys and its code."""
    valid = same(agents, p, "name"), agents.c.revoked_at.is_(None)
    nothing = {"key_digest": null(), **NO_OLD_KEY, **NO_CODE}
    return update(agents).where(*valid).values(revoked_at=p["revoked_at"], **nothing)


def record_agent_keys(d: Dialect, p: Parameters) -> Update:
    """Record that keys are in use; the codes that were given out with them are void."""
    used = d.one_of(agents.c.key_digest, "digests")
    return update(agents).where(used).values(last_used_at=p["last_used_at"], **NO_CODE)


def record_old_agent_keys(d: Dialect, p: Parameters) -> Update:
    """Record that keys are in use that were replaced."""
    used = d.one_of(agents.c.old_key_digest, "digests")
    return update(agents).where(used).values(last_used_at=p["last_used_at"])
