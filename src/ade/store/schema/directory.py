"""The tables of workspaces, users, keys, sessions and secrets."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    SmallInteger,
    String,
    Table,
)

from ade.store.schema.columns import Digest, Id, Name, Word, metadata

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Id, primary_key=True),
    Column("slug", String(63), nullable=False, unique=True),
    Column("name", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False, unique=True),
    Column("operator", SmallInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("operator IN (0, 1)", name="operator"),
)

members = Table(
    "members",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("role", Word, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("role IN ('viewer', 'editor', 'admin')", name="role"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("workspace_id", Id, ForeignKey("workspaces.id"), nullable=True),
    Column("role", Word, nullable=True),
    Column("label", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger, nullable=True),
    CheckConstraint("role IN ('viewer', 'editor', 'admin')", name="role"),
    Index("ix_api_keys_workspace", "workspace_id", "id"),
)

# What a browser holds instead of a key. It ends with its key: a revoked key authenticates no
# session, and a deleted one takes its sessions along.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("key_id", Id, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    Column("client", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    CheckConstraint("digest LIKE 'sha256:%'", name="digest"),
    CheckConstraint("last_seen_at >= created_at", name="last_seen_at"),
    CheckConstraint("expires_at > last_seen_at", name="expires_at"),
    Index("ix_sessions_user", "user_id", "id"),
    Index("ix_sessions_key", "key_id", "id"),
    Index("ix_sessions_expiry", "expires_at"),
)

# A used link is kept until it expires, so that its second use can be told from a wrong token.
login_links = Table(
    "login_links",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("key_id", Id, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger, nullable=True),
    CheckConstraint("digest LIKE 'sha256:%'", name="digest"),
    CheckConstraint("expires_at > created_at", name="expires_at"),
    Index("ix_login_links_key", "key_id", "id"),
    Index("ix_login_links_expiry", "expires_at"),
)

# Secrets that all servers of this database share; the first server that needs one makes it.
secrets = Table(
    "secrets",
    metadata,
    Column("name", Word, primary_key=True),
    Column("value", String(100), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
