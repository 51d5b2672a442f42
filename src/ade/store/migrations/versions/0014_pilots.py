"""Note what a worker has room for and when it drains, and keep scalers and their blocks.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR

revision = "0014_pilots"
down_revision = "0013_live_output"

NAME = sa.String(200).with_variant(NVARCHAR(200), "mssql")
JSON = sa.Text().with_variant(NVARCHAR(), "mssql")


def upgrade() -> None:
    """Create the tables; that of workers anew, since all of them note themselves every 10 s."""
    op.drop_table("workers")
    op.create_table(
        "workers",
        sa.Column("name", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("kinds", JSON, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("drains_at", sa.BigInteger(), nullable=True),
        sa.Column("block", NAME, nullable=True),
        sa.CheckConstraint("slots >= 0", name=op.f("ck_workers_slots")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_table(
        "scalers",
        sa.Column("name", NAME, nullable=False),
        sa.Column("engine", NAME, nullable=False),
        sa.Column("owner", NAME, nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("state", JSON, nullable=False),
        sa.CheckConstraint(
            "(owner IS NULL AND lease_expires_at IS NULL)"
            " OR (owner IS NOT NULL AND lease_expires_at IS NOT NULL)",
            name=op.f("ck_scalers_lease"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_scalers")),
    )
    op.create_table(
        "scale_blocks",
        sa.Column("name", NAME, nullable=False),
        sa.Column("scaler", NAME, nullable=False),
        sa.Column("engine_id", NAME, nullable=True),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.Column("ordered_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("registered_at", sa.BigInteger(), nullable=True),
        sa.Column("left_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status IN ('ordered', 'queued', 'running') AND finished_at IS NULL)"
            " OR (status IN ('ended', 'failed', 'cancelled') AND finished_at IS NOT NULL)",
            name=op.f("ck_scale_blocks_status"),
        ),
        sa.CheckConstraint(
            "left_at IS NULL OR registered_at IS NOT NULL", name=op.f("ck_scale_blocks_left_at")
        ),
        sa.ForeignKeyConstraint(["scaler"], ["scalers.name"], name=op.f("fk_scale_blocks_scaler")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_scale_blocks")),
    )
    op.create_index("ix_scale_blocks_scaler", "scale_blocks", ["scaler", "finished_at"])
