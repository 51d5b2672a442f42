"""Create the kernel's tables: workspaces and keys, jobs and their logs, the admission gate.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001_kernel"
down_revision = None

ID = sa.String(36).with_variant(sa.UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(sa.NVARCHAR(200), "mssql")
WORD = sa.String(20)
DIGEST = sa.String(80)
JSON = sa.Text().with_variant(sa.NVARCHAR(), "mssql")


def upgrade() -> None:
    """Create every table with its constraints and indexes, and open the admission gate."""
    _create_workspaces()
    _create_users()
    _create_members()
    _create_api_keys()
    _create_documents()
    _create_configurations()
    _create_builds()
    _create_requests()
    _create_jobs()
    _create_events()
    _create_executions()
    _create_idempotency_keys()
    _create_gates()
    op.execute("INSERT INTO gates (name, passed) VALUES ('admission', 0)")


def _create_workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("id", ID, nullable=False),
        sa.Column("slug", sa.String(length=63), nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("slug", name=op.f("uq_workspaces_slug")),
    )


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("operator", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("operator IN (0, 1)", name=op.f("ck_users_operator")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )


def _create_members() -> None:
    op.create_table(
        "members",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("role", WORD, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('viewer', 'editor', 'admin')", name=op.f("ck_members_role")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_members_user_id")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_members_workspace_id")
        ),
        sa.PrimaryKeyConstraint("workspace_id", "user_id", name=op.f("pk_members")),
    )


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=True),
        sa.Column("role", WORD, nullable=True),
        sa.Column("label", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('viewer', 'editor', 'admin')", name=op.f("ck_api_keys_role")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_api_keys_user_id")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_api_keys_workspace_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_index("ix_api_keys_workspace", "api_keys", ["workspace_id", "id"])


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("ck_documents_size")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_documents_workspace_id")
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_documents")),
    )


def _create_configurations() -> None:
    op.create_table(
        "configurations",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_configurations_workspace_id")
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_configurations")),
    )


def _create_builds() -> None:
    op.create_table(
        "builds",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("configuration_id", ID, nullable=False),
        sa.Column("fingerprint", DIGEST, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_owner", NAME, nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("error", JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status = 'building' AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL)"
            " OR (status <> 'building' AND lease_owner IS NULL AND lease_expires_at IS NULL)",
            name=op.f("ck_builds_building_iff_leased"),
        ),
        sa.CheckConstraint(
            "(status IN ('ready', 'failed', 'cancelled') AND finished_at IS NOT NULL)"
            " OR (status NOT IN ('ready', 'failed', 'cancelled') AND finished_at IS NULL)",
            name=op.f("ck_builds_settled_iff_finished_at"),
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'building', 'ready', 'failed', 'cancelled')",
            name=op.f("ck_builds_status"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_builds_workspace_id_configuration_id"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_builds")),
        sa.UniqueConstraint(
            "configuration_id", "fingerprint", name=op.f("uq_builds_configuration_id_fingerprint")
        ),
    )


def _create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(length=63), nullable=False),
        sa.Column("priority", WORD, nullable=False),
        sa.Column("execution_key", DIGEST, nullable=True),
        sa.Column("rerun_of", ID, nullable=True),
        sa.Column("configuration_id", ID, nullable=True),
        sa.Column("document_id", ID, nullable=True),
        sa.Column("build_id", ID, nullable=True),
        sa.Column("submitted_by", NAME, nullable=False),
        sa.Column("submitted_at", sa.BigInteger(), nullable=False),
        sa.Column("limits", JSON, nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.CheckConstraint(
            "kind <> 'normalize' OR (configuration_id IS NOT NULL AND document_id IS NOT NULL"
            " AND build_id IS NOT NULL)",
            name=op.f("ck_requests_run_is_complete"),
        ),
        sa.CheckConstraint(
            "priority IN ('high', 'normal', 'low')", name=op.f("ck_requests_priority")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "build_id"],
            ["builds.workspace_id", "builds.id"],
            name=op.f("fk_requests_workspace_id_build_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_requests_workspace_id_configuration_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "document_id"],
            ["documents.workspace_id", "documents.id"],
            name=op.f("fk_requests_workspace_id_document_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_requests_workspace_id")
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_requests")),
    )
    _partial_index(
        "ix_requests_build", "requests", ["workspace_id", "build_id"], where="build_id IS NOT NULL"
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("pool", WORD, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("eligible", sa.SmallInteger(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("target_id", NAME, nullable=True),
        sa.Column("holds_lane", sa.SmallInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("retries_left", sa.Integer(), nullable=False),
        sa.Column("lease_owner", NAME, nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("stop_request", WORD, nullable=True),
        sa.Column("event_seq", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=False),
        sa.Column("progress", JSON, nullable=True),
        sa.Column("usage", JSON, nullable=True),
        sa.Column("isolation", JSON, nullable=True),
        sa.Column("error", JSON, nullable=True),
        sa.Column("history", JSON, nullable=False),
        sa.Column("result", JSON, nullable=True),
        sa.CheckConstraint(
            "CASE"
            " WHEN status = 'queued' AND finished_at IS NULL AND eligible IN (0, 1)"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'running' AND finished_at IS NULL AND eligible = 0"
            " AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL AND fence > 0 THEN 1"
            " WHEN status = 'succeeded' AND finished_at IS NOT NULL AND eligible = 0"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'failed' AND finished_at IS NOT NULL AND eligible = 0"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'timed_out' AND finished_at IS NOT NULL AND eligible = 0"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'cancelled' AND finished_at IS NOT NULL AND eligible = 0"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'paused' AND finished_at IS NULL AND eligible = 0"
            " AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " WHEN status = 'pending' AND finished_at IS NULL AND eligible = 0"
            " AND not_before IS NOT NULL AND lease_owner IS NULL AND lease_expires_at IS NULL"
            " AND stop_request IS NULL THEN 1"
            " ELSE 0 END = 1",
            name=op.f("ck_jobs_shape"),
        ),
        sa.CheckConstraint(
            "stop_request IN ('cancel', 'pause')", name=op.f("ck_jobs_stop_request")
        ),
        sa.CheckConstraint(
            "target_id IS NULL OR holds_lane = 1 OR (eligible = 0 AND status <> 'running')",
            name=op.f("ck_jobs_head_holds_lane"),
        ),
        sa.CheckConstraint(
            "fence >= 0 AND retries_left >= 0 AND event_seq >= 0", name=op.f("ck_jobs_counts")
        ),
        sa.CheckConstraint(
            "holds_lane = 0 OR (holds_lane = 1 AND target_id IS NOT NULL)",
            name=op.f("ck_jobs_lane_has_target"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_jobs")),
    )
    _partial_index(
        "ix_jobs_eligible", "jobs", ["pool", "workspace_id", "rank", "id"], where="eligible = 1"
    )
    _partial_index(
        "ix_jobs_held",
        "jobs",
        ["pool", "not_before"],
        where="eligible = 0 AND status IN ('pending', 'queued')",
    )
    _partial_index(
        "ix_jobs_lane",
        "jobs",
        ["workspace_id", "target_id", "rank", "id"],
        where="status = 'queued' AND target_id IS NOT NULL",
    )
    _partial_index(
        "ix_jobs_lane_holder", "jobs", ["workspace_id", "target_id"], where="holds_lane = 1"
    )
    _partial_index("ix_jobs_lease", "jobs", ["lease_expires_at"], where="status = 'running'")
    _partial_index(
        "ux_jobs_live_target",
        "jobs",
        ["workspace_id", "target_id"],
        where="status = 'running' AND target_id IS NOT NULL",
        unique=True,
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.CheckConstraint("seq > 0", name=op.f("ck_events_seq")),
        sa.PrimaryKeyConstraint("workspace_id", "job_id", "seq", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )


def _create_executions() -> None:
    op.create_table(
        "executions",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("execution_key", DIGEST, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "execution_key", name=op.f("pk_executions")),
        sqlite_with_rowid=False,
    )


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("principal", NAME, nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("body_digest", DIGEST, nullable=False),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_body", JSON, nullable=True),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "workspace_id", "principal", "endpoint", "key", name=op.f("pk_idempotency_keys")
        ),
    )
    op.create_index("ix_idempotency_keys_created", "idempotency_keys", ["created_at"])


def _create_gates() -> None:
    op.create_table(
        "gates",
        sa.Column("name", WORD, nullable=False),
        sa.Column("passed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_gates")),
    )


def _partial_index(
    name: str, table: str, columns: list[str], *, where: str, unique: bool = False
) -> None:
    """Index only the rows that a condition holds for, in the words of each database."""
    condition = sa.text(where)
    op.create_index(
        name,
        table,
        columns,
        unique=unique,
        postgresql_where=condition,
        sqlite_where=condition,
        mssql_where=condition,
    )
