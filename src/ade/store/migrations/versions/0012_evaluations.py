"""Add to a job what its run says of its own result: the evaluation, and what was counted.

Runs that ended before have neither. Processes of an older version can go on: they write neither.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012_evaluations"
down_revision = "0011_sessions"

JSON = sa.Text().with_variant(sa.NVARCHAR(), "mssql")
CHECK_NAME = "ck_jobs_evaluation"
CHECK = (
    "evaluation IS NULL OR (finished_at IS NOT NULL AND counts IS NOT NULL"
    " AND (evaluation = 'complete' OR evaluation = 'partial' OR evaluation = 'unusable'))"
)


def upgrade() -> None:
    """Add both columns, empty."""
    if op.get_context().dialect.name == "sqlite":
        _write_jobs_anew()
        return
    op.add_column("jobs", sa.Column("evaluation", sa.String(20), nullable=True))
    op.add_column("jobs", sa.Column("counts", JSON, nullable=True))
    op.create_check_constraint(op.f(CHECK_NAME), "jobs", CHECK)


def _write_jobs_anew() -> None:
    """Add a check, which SQLite can do only with a new table."""
    table, indexes = _definitions("jobs")
    before, constraint, after = table.partition("CONSTRAINT ")
    assert constraint, "the table is not as an earlier revision made it"
    columns = "evaluation VARCHAR(20), \n\tcounts TEXT, \n\t"
    check = f"CONSTRAINT {CHECK_NAME} CHECK ({CHECK}), \n\t"
    found = op.get_bind().execute(sa.text("SELECT name FROM pragma_table_info('jobs')"))
    kept = ", ".join(f'"{row.name}"' for row in found)
    op.execute("CREATE TABLE jobs_before AS SELECT * FROM jobs")
    op.execute("DROP TABLE jobs")
    op.get_bind().exec_driver_sql(f"{before}{columns}{check}{constraint}{after}")
    op.execute(f"INSERT INTO jobs ({kept}) SELECT {kept} FROM jobs_before")
    op.execute("DROP TABLE jobs_before")
    for sql in indexes:
        op.get_bind().exec_driver_sql(sql)


def _definitions(name: str) -> tuple[str, list[str]]:
    query = "SELECT type, sql FROM sqlite_master WHERE tbl_name = :name AND sql IS NOT NULL"
    found = op.get_bind().execute(sa.text(query), {"name": name}).all()
    [table] = [sql for kind, sql in found if kind == "table"]
    return table, [sql for kind, sql in found if kind == "index"]
