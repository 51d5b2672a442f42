"""Add the agents that were enrolled, with their keys and codes.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID

revision = "0016_agents"
down_revision = "0015_agent_jobs"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(NVARCHAR(200), "mssql")
JSON = sa.Text().with_variant(NVARCHAR(), "mssql")
DIGEST = sa.String(80)


def upgrade() -> None:
    """Create the table; no agent is enrolled after an upgrade."""
    op.create_table(
        "agents",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("key_digest", DIGEST, nullable=True),
        sa.Column("old_key_digest", DIGEST, nullable=True),
        sa.Column("old_key_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("code_digest", DIGEST, nullable=True),
        sa.Column("code_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("rotated_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(revoked_at IS NULL AND key_digest IS NOT NULL)"
            " OR (revoked_at IS NOT NULL AND key_digest IS NULL AND old_key_digest IS NULL"
            " AND code_digest IS NULL)",
            name=op.f("ck_agents_revoked"),
        ),
        sa.CheckConstraint(
            "(old_key_digest IS NULL AND old_key_expires_at IS NULL)"
            " OR (old_key_digest IS NOT NULL AND old_key_expires_at IS NOT NULL)",
            name=op.f("ck_agents_old_key"),
        ),
        sa.CheckConstraint(
            "(code_digest IS NULL AND code_expires_at IS NULL)"
            " OR (code_digest IS NOT NULL AND code_expires_at IS NOT NULL)",
            name=op.f("ck_agents_code"),
        ),
        sa.CheckConstraint(
            "(key_digest IS NULL OR key_digest LIKE 'sha256:%')"
            " AND (old_key_digest IS NULL OR old_key_digest LIKE 'sha256:%')"
            " AND (code_digest IS NULL OR code_digest LIKE 'sha256:%')",
            name=op.f("ck_agents_digests"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("name", name=op.f("uq_agents_name")),
    )
    for digest in ("key_digest", "old_key_digest", "code_digest"):
        given = sa.text(f"{digest} IS NOT NULL")
        op.create_index(
            f"ux_agents_{digest}",
            "agents",
            [digest],
            unique=True,
            postgresql_where=given,
            sqlite_where=given,
            mssql_where=given,
        )
