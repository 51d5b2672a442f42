"""Add the archives of environments, by which other hosts get what one host installed.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mssql import NVARCHAR

revision = "0017_environment_archives"
down_revision = "0016_agents"

NAME = sa.String(200).with_variant(NVARCHAR(200), "mssql")
TEXT = sa.Text().with_variant(NVARCHAR(), "mssql")
DIGEST = sa.String(80)


def upgrade() -> None:
    """Create the table; environments that are there already are archived when they are needed."""
    op.create_table(
        "environment_archives",
        sa.Column("environment", DIGEST, nullable=False),
        sa.Column("archive", DIGEST, nullable=False),
        sa.Column("archive_bytes", sa.BigInteger(), nullable=False),
        sa.Column("installed_bytes", sa.BigInteger(), nullable=False),
        sa.Column("interpreter", NAME, nullable=False),
        sa.Column("installer", NAME, nullable=False),
        sa.Column("source_builds", sa.SmallInteger(), nullable=False),
        sa.Column("lock", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "environment LIKE 'sha256:%' AND archive LIKE 'sha256:%'",
            name=op.f("ck_environment_archives_digests"),
        ),
        sa.CheckConstraint(
            "archive_bytes > 0 AND installed_bytes >= 0 AND used_at >= created_at"
            " AND source_builds IN (0, 1)",
            name=op.f("ck_environment_archives_shape"),
        ),
        sa.PrimaryKeyConstraint("environment", name=op.f("pk_environment_archives")),
    )
