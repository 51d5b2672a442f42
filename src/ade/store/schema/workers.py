"""The tables of workers, of scalers with their blocks, and of what operators have paused."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
)

from ade.store.schema.columns import Json, Name, Word, id_column, metadata

# The workers that are running, and the kinds that each can run. A row that is not refreshed is
# deleted by the next sweep.
workers = Table(
    "workers",
    metadata,
    Column("name", Name, primary_key=True),
    Column("host", Name, nullable=False),
    # A JSON list of names.
    Column("kinds", Json, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    # How many jobs it takes at once; none while it drains.
    Column("slots", Integer, nullable=False),
    Column("drains_at", BigInteger, nullable=True),
    Column("block", Name, nullable=True),
    CheckConstraint("slots >= 0", name="slots"),
)

# The scalers that keep pilots on engines: which process decides, until when (a lease), and what it
# last saw and did.
scalers = Table(
    "scalers",
    metadata,
    Column("name", Name, primary_key=True),
    Column("engine", Name, nullable=False),
    Column("owner", Name, nullable=True),
    Column("lease_expires_at", BigInteger, nullable=True),
    Column("seen_at", BigInteger, nullable=False),
    Column("state", Json, nullable=False),
    CheckConstraint(
        "(owner IS NULL AND lease_expires_at IS NULL)"
        " OR (owner IS NOT NULL AND lease_expires_at IS NOT NULL)",
        name="lease",
    ),
)

# The orders to engines. A row is written before the order goes out, so that none is forgotten.
scale_blocks = Table(
    "scale_blocks",
    metadata,
    Column("name", Name, primary_key=True),
    Column("scaler", Name, ForeignKey("scalers.name"), nullable=False),
    Column("engine_id", Name, nullable=True),
    Column("status", Word, nullable=False),
    Column("detail", Json, nullable=False),
    Column("ordered_at", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("registered_at", BigInteger, nullable=True),
    Column("left_at", BigInteger, nullable=True),
    Column("finished_at", BigInteger, nullable=True),
    CheckConstraint(
        "(status IN ('ordered', 'queued', 'running') AND finished_at IS NULL)"
        " OR (status IN ('ended', 'failed', 'cancelled') AND finished_at IS NOT NULL)",
        name="status",
    ),
    CheckConstraint("left_at IS NULL OR registered_at IS NOT NULL", name="left_at"),
    Index("ix_scale_blocks_scaler", "scaler", "finished_at"),
)

# What operators keep from starting: the jobs of a workspace, of a kind or of both, or whatever a
# worker would take. The scope stands for all of these.
queue_pauses = Table(
    "queue_pauses",
    metadata,
    Column("scope", Name, primary_key=True),
    id_column("workspace_id", nullable=True),
    Column("kind", Name, nullable=True),
    Column("worker", Name, nullable=True),
    Column("reason", Json, nullable=False),
    Column("paused_by", Name, nullable=False),
    Column("paused_at", BigInteger, nullable=False),
    CheckConstraint("worker IS NULL OR (workspace_id IS NULL AND kind IS NULL)", name="worker"),
)
