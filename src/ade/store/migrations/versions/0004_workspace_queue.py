"""Count what waits in one workspace along an index, for its quota.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004_workspace_queue"
down_revision = "0003_artifacts"

HELD = sa.text("eligible = 0 AND status IN ('pending', 'queued')")


def upgrade() -> None:
    """Add the index of the jobs that wait for something else than a worker, by workspace."""
    op.create_index(
        "ix_jobs_held_in",
        "jobs",
        ["workspace_id", "pool"],
        unique=False,
        postgresql_where=HELD,
        sqlite_where=HELD,
        mssql_where=HELD,
    )
