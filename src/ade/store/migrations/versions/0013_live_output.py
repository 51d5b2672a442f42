"""Add the log of what jobs write while they run.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID

revision = "0013_live_output"
down_revision = "0012_evaluations"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
JSON = sa.Text().with_variant(NVARCHAR(), "mssql")


def upgrade() -> None:
    """Create the table; the output of jobs that ended before is in their results."""
    op.create_table(
        "output_batches",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("starts", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("pieces", JSON, nullable=False),
        sa.CheckConstraint(
            "seq > 0 AND attempt > 0 AND starts >= 0 AND ends > starts",
            name=op.f("ck_output_batches_place"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "job_id", "seq", name=op.f("pk_output_batches")),
    )
