"""Keep the files that results name, and the secret that links to them are signed with.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003_artifacts"
down_revision = "0002_library"

ID = sa.String(36).with_variant(sa.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    """Add the tables of artifacts and secrets."""
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(20), nullable=False),
        sa.Column("value", sa.String(100), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )
    op.create_table(
        "artifacts",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("name", sa.String(255).with_variant(sa.NVARCHAR(255), "mssql"), nullable=False),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.String(127), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("ck_artifacts_size_bytes")),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint("id", name=op.f("uq_artifacts_id")),
    )
    op.create_index("ix_artifacts_job", "artifacts", ["workspace_id", "job_id"])
    op.create_index("ix_artifacts_digest", "artifacts", ["workspace_id", "digest"])
