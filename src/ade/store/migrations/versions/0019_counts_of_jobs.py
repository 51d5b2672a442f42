"""Count jobs in the transactions that change them, and give each filter of a list an index.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0019_counts_of_jobs"
down_revision = "0018_queue_pauses"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
WORD = sa.String(20)
# The indexes of lists: name, table, column, and of which rows.
INDEXES = (
    ("ix_jobs_ended", "jobs", "status", "finished_at IS NOT NULL"),
    ("ix_jobs_unfinished", "jobs", "status", "finished_at IS NULL"),
    ("ix_jobs_target_id", "jobs", "target_id", "target_id IS NOT NULL"),
    ("ix_jobs_evaluation", "jobs", "evaluation", "evaluation IS NOT NULL"),
    ("ix_requests_kind", "requests", "kind", None),
    ("ix_requests_priority", "requests", "priority", None),
    (
        "ix_requests_configuration_id",
        "requests",
        "configuration_id",
        "configuration_id IS NOT NULL",
    ),
    ("ix_requests_document_id", "requests", "document_id", "document_id IS NOT NULL"),
)
COUNT = """
INSERT INTO job_counts (workspace_id, pool, kind, priority, status, shard, jobs)
SELECT jobs.workspace_id, jobs.pool, requests.kind, requests.priority, jobs.status, 0, count(*)
FROM jobs JOIN requests
ON requests.workspace_id = jobs.workspace_id AND requests.id = jobs.id
GROUP BY jobs.workspace_id, jobs.pool, requests.kind, requests.priority, jobs.status
"""


def upgrade() -> None:
    """Create the counters with what there is, and the indexes."""
    op.create_table(
        "job_counts",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("pool", WORD, nullable=False),
        sa.Column("kind", sa.String(63), nullable=False),
        sa.Column("priority", WORD, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("shard", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("shard >= 0", name=op.f("ck_job_counts_shard")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_job_counts_workspace_id")
        ),
        sa.PrimaryKeyConstraint(
            "workspace_id",
            "pool",
            "kind",
            "priority",
            "status",
            "shard",
            name=op.f("pk_job_counts"),
        ),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )
    op.execute(COUNT)
    for name, table, column, condition in INDEXES:
        where = None if condition is None else sa.text(condition)
        some = dict.fromkeys(("postgresql_where", "sqlite_where", "mssql_where"), where)
        op.create_index(name, table, ["workspace_id", column, "id"], **some)
