"""The tables of agents, their hosts and their jobs."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    Table,
)

from ade.store.schema.columns import (
    Digest,
    Id,
    Json,
    Name,
    Word,
    id_column,
    metadata,
    partial_index,
)

# What the worker contract knows of a job beside its status: the names under which people and agents
# find it, and what its agent reported. Found by the id alone: the contract has no workspaces.
agent_jobs = Table(
    "agent_jobs",
    metadata,
    Column("job_id", Id, primary_key=True),
    id_column("workspace_id"),
    Column("job_name", Name, nullable=False),
    Column("pool", Word, nullable=False),
    # What the agent said last, and when it said anything about the job.
    Column("facts", Json, nullable=False),
    Column("reported_at", BigInteger, nullable=False),
    ForeignKeyConstraint(["workspace_id", "job_id"], ["requests.workspace_id", "requests.id"]),
    Index("ix_agent_jobs_workspace", "workspace_id", "job_id"),
)

# What the jobs of a pool of agents ask for: see `ade.domain.agent_pool`.
agent_pools = Table(
    "agent_pools",
    metadata,
    Column("name", Word, primary_key=True),
    Column("host", Name, nullable=True),
    Column("require_host", SmallInteger, nullable=False),
    # A JSON list.
    Column("labels", Json, nullable=False),
    CheckConstraint("require_host IN (0, 1)", name="require_host"),
    CheckConstraint("require_host = 0 OR host IS NOT NULL", name="required_host"),
)

# The agents that were heard of, and what their last heartbeats said.
hosts = Table(
    "hosts",
    metadata,
    Column("name", Name, primary_key=True),
    Column("first_seen_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    # When it last asked for work.
    Column("asked_at", BigInteger, nullable=True),
    # When `info` came, and what it was.
    Column("beat_at", BigInteger, nullable=True),
    Column("info", Json, nullable=False),
    CheckConstraint("seen_at >= first_seen_at", name="seen_at"),
)

# The agents that were enrolled, each with its key, as a digest. A code is traded for a key once;
# a key that was replaced may work a while longer. A revoked agent has neither.
agents = Table(
    "agents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False, unique=True),
    # A JSON list.
    Column("labels", Json, nullable=False),
    Column("key_digest", Digest, nullable=True),
    Column("old_key_digest", Digest, nullable=True),
    Column("old_key_expires_at", BigInteger, nullable=True),
    Column("code_digest", Digest, nullable=True),
    Column("code_expires_at", BigInteger, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("rotated_at", BigInteger, nullable=True),
    Column("revoked_at", BigInteger, nullable=True),
    Column("last_used_at", BigInteger, nullable=True),
    CheckConstraint(
        "(revoked_at IS NULL AND key_digest IS NOT NULL)"
        " OR (revoked_at IS NOT NULL AND key_digest IS NULL AND old_key_digest IS NULL"
        " AND code_digest IS NULL)",
        name="revoked",
    ),
    CheckConstraint(
        "(old_key_digest IS NULL AND old_key_expires_at IS NULL)"
        " OR (old_key_digest IS NOT NULL AND old_key_expires_at IS NOT NULL)",
        name="old_key",
    ),
    CheckConstraint(
        "(code_digest IS NULL AND code_expires_at IS NULL)"
        " OR (code_digest IS NOT NULL AND code_expires_at IS NOT NULL)",
        name="code",
    ),
    CheckConstraint(
        "(key_digest IS NULL OR key_digest LIKE 'sha256:%')"
        " AND (old_key_digest IS NULL OR old_key_digest LIKE 'sha256:%')"
        " AND (code_digest IS NULL OR code_digest LIKE 'sha256:%')",
        name="digests",
    ),
)

for _column in (agents.c.key_digest, agents.c.old_key_digest, agents.c.code_digest):
    partial_index(f"ux_agents_{_column.name}", _column, where=_column.is_not(None), unique=True)
