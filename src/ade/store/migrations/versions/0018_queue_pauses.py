"""Add what operators keep from starting: workspaces, kinds, and workers that take no more.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID

revision = "0018_queue_pauses"
down_revision = "0017_environment_archives"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(NVARCHAR(200), "mssql")
TEXT = sa.Text().with_variant(NVARCHAR(), "mssql")


def upgrade() -> None:
    """Create the table; nothing is paused after an upgrade."""
    op.create_table(
        "queue_pauses",
        sa.Column("scope", NAME, nullable=False),
        sa.Column("workspace_id", ID, nullable=True),
        sa.Column("kind", NAME, nullable=True),
        sa.Column("worker", NAME, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("paused_by", NAME, nullable=False),
        sa.Column("paused_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "worker IS NULL OR (workspace_id IS NULL AND kind IS NULL)",
            name=op.f("ck_queue_pauses_worker"),
        ),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_queue_pauses")),
    )
