"""Keep documents, the drafts and versions of configurations, and what builds were made of.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002_library"
down_revision = "0001_kernel"

ID = sa.String(36).with_variant(sa.UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(sa.NVARCHAR(200), "mssql")
DIGEST = sa.String(80)
JSON = sa.Text().with_variant(sa.NVARCHAR(), "mssql")


def upgrade() -> None:
    """Add what documents and builds remember, and the tables of drafts and versions."""
    op.add_column("documents", sa.Column("content_type", sa.String(length=127), nullable=True))
    op.add_column("documents", sa.Column("deleted_at", sa.BigInteger(), nullable=True))
    op.add_column("configurations", sa.Column("deleted_at", sa.BigInteger(), nullable=True))
    op.add_column("builds", sa.Column("version_id", ID, nullable=True))
    op.add_column("builds", sa.Column("environment", DIGEST, nullable=True))
    _create_draft_files()
    _create_config_versions()


def _create_draft_files() -> None:
    op.create_table(
        "draft_files",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("configuration_id", ID, nullable=False),
        sa.Column("path", NAME, nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_draft_files_workspace_id_configuration_id"),
        ),
        sa.PrimaryKeyConstraint(
            "workspace_id", "configuration_id", "path", name=op.f("pk_draft_files")
        ),
    )


def _create_config_versions() -> None:
    op.create_table(
        "config_versions",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("configuration_id", ID, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("digest", DIGEST, nullable=False),
        sa.Column("manifest", JSON, nullable=False),
        sa.Column("created_by", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("sequence > 0", name=op.f("ck_config_versions_sequence")),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_config_versions_workspace_id_configuration_id"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_config_versions")),
        sa.UniqueConstraint(
            "configuration_id",
            "sequence",
            name=op.f("uq_config_versions_configuration_id_sequence"),
        ),
        sa.UniqueConstraint(
            "configuration_id", "digest", name=op.f("uq_config_versions_configuration_id_digest")
        ),
    )
