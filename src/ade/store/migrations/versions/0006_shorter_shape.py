"""Say what a job's row may look like in fewer words: PostgreSQL reads them anew for each statement.

Nothing is allowed or refused that was not before. SQLite cannot change a constraint, so the table
is written anew.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006_shorter_shape"
down_revision = "0005_build_losses"

NAME = "ck_jobs_shape"
SHAPE = (
    "CASE"
    " WHEN status = 'queued' AND finished_at IS NULL AND eligible IN (0, 1)"
    " AND lease_owner IS NULL AND lease_expires_at IS NULL AND stop_request IS NULL THEN 1"
    " WHEN status = 'running' AND finished_at IS NULL AND eligible = 0"
    " AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL AND fence > 0 THEN 1"
    " WHEN eligible <> 0 OR lease_owner IS NOT NULL OR lease_expires_at IS NOT NULL"
    " OR stop_request IS NOT NULL THEN 0"
    " WHEN finished_at IS NOT NULL AND (status = 'succeeded' OR status = 'failed'"
    " OR status = 'timed_out' OR status = 'cancelled') THEN 1"
    " WHEN finished_at IS NULL"
    " AND (status = 'paused' OR status = 'pending' AND not_before IS NOT NULL) THEN 1"
    " ELSE 0 END = 1"
)


def upgrade() -> None:
    """Exchange the constraint."""
    if op.get_context().dialect.name == "sqlite":
        _write_anew()
        return
    op.drop_constraint(op.f(NAME), "jobs", type_="check")
    op.create_check_constraint(op.f(NAME), "jobs", SHAPE)


def _write_anew() -> None:
    defined = "SELECT type, sql FROM sqlite_master WHERE tbl_name = 'jobs' AND sql IS NOT NULL"
    found = op.get_bind().execute(sa.text(defined)).all()
    [table] = [sql for kind, sql in found if kind == "table"]
    before, constraint, after = table.partition(f"CONSTRAINT {NAME} CHECK (")
    _, end, rest = after.partition(" END = 1)")
    assert end, "the table is not as the first revision made it"
    op.execute("ALTER TABLE jobs RENAME TO jobs_before")
    op.execute(f"{before}{constraint}{SHAPE}){rest}")
    op.execute("INSERT INTO jobs SELECT * FROM jobs_before")
    op.execute("DROP TABLE jobs_before")
    for kind, sql in found:
        if kind == "index":
            op.execute(sql)
