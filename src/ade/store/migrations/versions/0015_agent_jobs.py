"""Keep what the worker contract knows of jobs, the pools of agents, and the hosts.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID

revision = "0015_agent_jobs"
down_revision = "0014_pilots"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(NVARCHAR(200), "mssql")
JSON = sa.Text().with_variant(NVARCHAR(), "mssql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "agent_jobs",
        sa.Column("job_id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("job_name", NAME, nullable=False),
        sa.Column("pool", sa.String(20), nullable=False),
        sa.Column("facts", JSON, nullable=False),
        sa.Column("reported_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "job_id"],
            ["requests.workspace_id", "requests.id"],
            name=op.f("fk_agent_jobs_workspace_id_job_id"),
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_agent_jobs")),
    )
    op.create_index("ix_agent_jobs_workspace", "agent_jobs", ["workspace_id", "job_id"])
    op.create_table(
        "agent_pools",
        sa.Column("name", sa.String(20), nullable=False),
        sa.Column("host", NAME, nullable=True),
        sa.Column("require_host", sa.SmallInteger(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.CheckConstraint("require_host IN (0, 1)", name=op.f("ck_agent_pools_require_host")),
        sa.CheckConstraint(
            "require_host = 0 OR host IS NOT NULL", name=op.f("ck_agent_pools_required_host")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_agent_pools")),
    )
    op.create_table(
        "hosts",
        sa.Column("name", NAME, nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=True),
        sa.Column("beat_at", sa.BigInteger(), nullable=True),
        sa.Column("info", JSON, nullable=False),
        sa.CheckConstraint("seen_at >= first_seen_at", name=op.f("ck_hosts_seen_at")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_hosts")),
    )
