"""The tables of documents, configurations, versions and builds."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
)

from ade.store.schema.columns import Digest, Id, Json, Name, Word, id_column, metadata

documents = Table(
    "documents",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("content_type", String(127), nullable=True),
    # Runs remember their document: one that was deleted is out of sight, and its row stays.
    Column("deleted_at", BigInteger, nullable=True),
    CheckConstraint("size_bytes >= 0", name="size"),
)

configurations = Table(
    "configurations",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger, nullable=True),
)

# The files of a configuration as they are being edited; their contents are blobs.
draft_files = Table(
    "draft_files",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("configuration_id", Id, primary_key=True),
    Column("path", Name, primary_key=True),
    Column("digest", Digest, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
)

# What a configuration was at one moment: written once, never changed.
config_versions = Table(
    "config_versions",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    id_column("configuration_id"),
    Column("sequence", Integer, nullable=False),
    Column("digest", Digest, nullable=False),
    # [[path, digest, size], ...] in the order of the paths.
    Column("manifest", Json, nullable=False),
    Column("created_by", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    UniqueConstraint("configuration_id", "sequence"),
    UniqueConstraint("configuration_id", "digest"),
    CheckConstraint("sequence > 0", name="sequence"),
)

# Which version of a configuration runs use by default, and which one is to become it when its
# build is ready.
activations = Table(
    "activations",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("configuration_id", Id, primary_key=True),
    id_column("version_id", nullable=True),
    Column("activated_at", BigInteger, nullable=True),
    Column("activated_by", Name, nullable=True),
    id_column("pending_version_id", nullable=True),
    Column("pending_by", Name, nullable=True),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "version_id"], ["config_versions.workspace_id", "config_versions.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "pending_version_id"],
        ["config_versions.workspace_id", "config_versions.id"],
    ),
    CheckConstraint(
        "(version_id IS NULL AND activated_at IS NULL AND activated_by IS NULL)"
        " OR (version_id IS NOT NULL AND activated_at IS NOT NULL AND activated_by IS NOT NULL)",
        name="active_version",
    ),
    CheckConstraint(
        "(pending_version_id IS NULL AND pending_by IS NULL)"
        " OR (pending_version_id IS NOT NULL AND pending_by IS NOT NULL)",
        name="pending_version",
    ),
)

# One prepared environment for each content of a configuration. The work is a job of kind `build`,
# named by `job_id`; the row says what became of it.
builds = Table(
    "builds",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    id_column("configuration_id"),
    Column("fingerprint", Digest, nullable=False),
    Column("status", Word, nullable=False),
    Column("error", Json, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("finished_at", BigInteger, nullable=True),
    id_column("version_id", nullable=True),
    # The digest of the resolved requirements; null is ADE's own environment.
    Column("environment", Digest, nullable=True),
    # Null if there was nothing to do.
    id_column("job_id", nullable=True),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "version_id"], ["config_versions.workspace_id", "config_versions.id"]
    ),
    UniqueConstraint("configuration_id", "fingerprint"),
    CheckConstraint(
        "(status = 'queued' AND job_id IS NOT NULL AND version_id IS NOT NULL"
        " AND started_at IS NULL AND finished_at IS NULL AND error IS NULL"
        " AND environment IS NULL)"
        " OR (status = 'ready' AND finished_at IS NOT NULL AND error IS NULL)"
        " OR (status = 'failed' AND finished_at IS NOT NULL AND error IS NOT NULL"
        " AND environment IS NULL)"
        " OR (status = 'cancelled' AND finished_at IS NOT NULL AND environment IS NULL)",
        name="shape",
    ),
)

# Environments as archives among the blobs: what one host installed, others unpack. Those with
# another interpreter install the same lock themselves.
environment_archives = Table(
    "environment_archives",
    metadata,
    Column("environment", Digest, primary_key=True),
    Column("archive", Digest, nullable=False),
    Column("archive_bytes", BigInteger, nullable=False),
    Column("installed_bytes", BigInteger, nullable=False),
    # With the lock, what the environment's digest is made of.
    Column("interpreter", Name, nullable=False),
    Column("installer", Name, nullable=False),
    Column("source_builds", SmallInteger, nullable=False),
    Column("lock", Json, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # When a host last said that it uses it.
    Column("used_at", BigInteger, nullable=False),
    CheckConstraint(
        "environment LIKE 'sha256:%' AND archive LIKE 'sha256:%'",
        name="digests",
    ),
    CheckConstraint(
        "archive_bytes > 0 AND installed_bytes >= 0 AND used_at >= created_at"
        " AND source_builds IN (0, 1)",
        name="shape",
    ),
)
