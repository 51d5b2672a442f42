"""Add the sessions of browsers, and the one-time links that begin them.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0011_sessions"
down_revision = "0010_rows_that_belong_together"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(sa.NVARCHAR(200), "mssql")
DIGEST = sa.String(80)


def upgrade() -> None:
    """Create both tables; nobody is signed in after an upgrade."""
    _create_sessions()
    _create_login_links()


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("key_id", ID, nullable=False),
        sa.Column("client", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("digest LIKE 'sha256:%'", name=op.f("ck_sessions_digest")),
        sa.CheckConstraint("last_seen_at >= created_at", name=op.f("ck_sessions_last_seen_at")),
        sa.CheckConstraint("expires_at > last_seen_at", name=op.f("ck_sessions_expires_at")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sessions_user_id")),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_sessions_key_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_sessions_digest")),
    )
    op.create_index("ix_sessions_user", "sessions", ["user_id", "id"])
    op.create_index("ix_sessions_key", "sessions", ["key_id", "id"])
    op.create_index("ix_sessions_expiry", "sessions", ["expires_at"])


def _create_login_links() -> None:
    op.create_table(
        "login_links",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("key_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("digest LIKE 'sha256:%'", name=op.f("ck_login_links_digest")),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_login_links_expires_at")),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=op.f("fk_login_links_key_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_links")),
        sa.UniqueConstraint("digest", name=op.f("uq_login_links_digest")),
    )
    op.create_index("ix_login_links_key", "login_links", ["key_id", "id"])
    op.create_index("ix_login_links_expiry", "login_links", ["expires_at"])
