"""Tie a job to its request, note which workers run which kinds, and set jobs of other kinds aside.

A job without its request, which a race of older versions could leave, is not lost and does not stop
the upgrade: it gets a request of the kind `lost`, which no worker runs. So it can be seen again in
lists, and be cancelled. What it was asked to do is gone. A build that is queued forgets when its
work began: that is for its job to say. Rows that belong to no workspace at all cannot be explained,
and make the upgrade fail as a whole, with the name of the key that they violate.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010_rows_that_belong_together"
down_revision = "0009_builds_are_jobs"

NAME = sa.String(200).with_variant(sa.NVARCHAR(200), "mssql")
JSON = sa.Text().with_variant(sa.NVARCHAR(), "mssql")

KEY = "fk_jobs_workspace_id_id"
SET_ASIDE = "needs_kind IS NULL OR (status = 'queued' AND eligible = 0 AND not_before IS NULL)"
OLD_QUEUED = " AND finished_at IS NULL AND error IS NULL AND environment IS NULL)"
NEW_QUEUED = (
    " AND started_at IS NULL AND finished_at IS NULL AND error IS NULL AND environment IS NULL)"
)
BUILD_SHAPE = (
    f"(status = 'queued' AND job_id IS NOT NULL AND version_id IS NOT NULL{NEW_QUEUED}"
    " OR (status = 'ready' AND finished_at IS NOT NULL AND error IS NULL)"
    " OR (status = 'failed' AND finished_at IS NOT NULL AND error IS NOT NULL"
    " AND environment IS NULL)"
    " OR (status = 'cancelled' AND finished_at IS NOT NULL AND environment IS NULL)"
)
LIMITS = (
    '{"timeout_ms": 60000, "cpu_ms": 60000, "memory_mb": 512, "max_output_kb": 256,'
    ' "max_artifacts": 0}'
)
# The rank of a build is its time of submission less this; of other jobs, that time within minutes.
RANK_OFFSET = 1 << 60
PARENTS = {
    "requests": {
        "workspaces": {"workspace_id": "id"},
        "builds": {"workspace_id": "workspace_id", "build_id": "id"},
        "configurations": {"workspace_id": "workspace_id", "configuration_id": "id"},
        "documents": {"workspace_id": "workspace_id", "document_id": "id"},
    },
    "jobs": {"requests": {"workspace_id": "workspace_id", "id": "id"}},
}
HAVE_PARENTS = """
CREATE FUNCTION jobs_have_parents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added WHERE ((SELECT true FROM requests WHERE requests.workspace_id =
      added.workspace_id AND requests.id = added.id) IS NULL)
  ) THEN
    RAISE foreign_key_violation USING MESSAGE =
      'a row of jobs names a parent that does not exist, against a foreign key';
  END IF;
  RETURN NULL;
END $$
"""
ON_INSERT = """
CREATE TRIGGER jobs_have_parents AFTER INSERT ON jobs
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION jobs_have_parents()
"""
KEEP_CHILDREN = """
CREATE FUNCTION {parent}_keep_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM gone WHERE EXISTS (SELECT FROM {table} WHERE {names_it})
  ) THEN
    RAISE foreign_key_violation USING MESSAGE =
      'a row of {table} names a row of {parent} that was deleted, against a foreign key';
  END IF;
  RETURN NULL;
END $$
"""
ON_DELETE = """
CREATE TRIGGER {parent}_keep_{table} AFTER DELETE ON {parent}
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION {parent}_keep_{table}()
"""
KEYS_STAY = """
CREATE FUNCTION {table}_keys_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE foreign_key_violation USING MESSAGE =
    'the keys between {table} and their parents never change, against a foreign key';
END $$
"""
ON_CHANGE = """
CREATE TRIGGER {changed}_keys_stay_for_{table} BEFORE UPDATE OF {columns} ON {changed}
FOR EACH ROW EXECUTE FUNCTION {table}_keys_stay()
"""


def upgrade() -> None:
    """Complete the rows, then add what keeps them complete."""
    dialect = op.get_context().dialect.name
    if dialect == "postgresql":
        op.execute("LOCK TABLE jobs, requests IN SHARE ROW EXCLUSIVE MODE")
    _give_requests()
    op.execute("UPDATE builds SET started_at = NULL WHERE status = 'queued'")
    if dialect == "sqlite":
        _write_jobs_anew()
        _write_builds_anew()
    else:
        op.add_column("jobs", sa.Column("needs_kind", sa.String(63), nullable=True))
        op.create_check_constraint(op.f("ck_jobs_set_aside"), "jobs", SET_ASIDE)
        op.drop_constraint(op.f("ck_builds_shape"), "builds", type_="check")
        op.create_check_constraint(op.f("ck_builds_shape"), "builds", BUILD_SHAPE)
    if dialect == "postgresql":
        _create_triggers()
    elif dialect == "mssql":
        key = ["workspace_id", "id"]
        op.create_foreign_key(op.f(KEY), "jobs", "requests", key, key)
    condition = sa.text("needs_kind IS NOT NULL")
    op.create_index(
        "ix_jobs_set_aside",
        "jobs",
        ["pool", "needs_kind", "rank"],
        sqlite_where=condition,
        postgresql_where=condition,
        mssql_where=condition,
    )
    _create_workers()


def _give_requests() -> None:
    """Give jobs without a request one that no worker runs."""
    op.execute(
        "INSERT INTO requests (workspace_id, id, kind, priority, submitted_by, submitted_at,"
        " limits, payload)"
        " SELECT workspace_id, id, 'lost', 'normal', 'upgrade',"
        f" CASE WHEN rank < 0 THEN rank + {RANK_OFFSET} ELSE rank END,"
        f' \'{LIMITS}\', \'{{"job_type": "lost", "inputs": {{}}}}\''
        " FROM jobs WHERE NOT EXISTS (SELECT 1 FROM requests r"
        " WHERE r.workspace_id = jobs.workspace_id AND r.id = jobs.id)"
    )


def _write_jobs_anew() -> None:
    """Add a key and a check, which SQLite can do only with a new table."""
    table, indexes = _definitions("jobs")
    more = (
        f"CONSTRAINT ck_jobs_set_aside CHECK ({SET_ASIDE}), \n\t"
        f"CONSTRAINT {KEY} FOREIGN KEY(workspace_id, id) REFERENCES requests (workspace_id, id)"
    )
    before, constraint, after = table.partition("CONSTRAINT ")
    assert constraint, "the table is not as the first revision made it"
    column = "needs_kind VARCHAR(63), \n\t"
    _replace_table("jobs", f"{before}{column}{more}, \n\t{constraint}{after}", indexes)


def _write_builds_anew() -> None:
    table, indexes = _definitions("builds")
    before, old, after = table.partition(OLD_QUEUED)
    assert old, "the table is not as the last revision made it"
    _replace_table("builds", f"{before}{NEW_QUEUED}{after}", indexes)


def _definitions(name: str) -> tuple[str, list[str]]:
    query = "SELECT type, sql FROM sqlite_master WHERE tbl_name = :name AND sql IS NOT NULL"
    found = op.get_bind().execute(sa.text(query), {"name": name}).all()
    [table] = [sql for kind, sql in found if kind == "table"]
    return table, [sql for kind, sql in found if kind == "index"]


def _replace_table(name: str, definition: str, indexes: list[str]) -> None:
    """Copy the rows through a second table: a renamed one would take the references along."""
    found = op.get_bind().execute(sa.text(f"SELECT name FROM pragma_table_info('{name}')"))
    columns = ", ".join(f'"{row.name}"' for row in found)
    op.execute(f"CREATE TABLE {name}_before AS SELECT * FROM {name}")
    op.execute(f"DROP TABLE {name}")
    op.get_bind().exec_driver_sql(definition)
    op.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM {name}_before")
    op.execute(f"DROP TABLE {name}_before")
    for sql in indexes:
        op.get_bind().exec_driver_sql(sql)


def _create_triggers() -> None:
    """Watch jobs as requests are watched, and the parents of both."""
    op.execute(HAVE_PARENTS)
    op.execute(ON_INSERT)
    for table, parents in PARENTS.items():
        op.execute(KEYS_STAY.format(table=table))
        own = ", ".join(sorted({name for key in parents.values() for name in key}))
        op.execute(ON_CHANGE.format(table=table, changed=table, columns=own))
        for parent, key in parents.items():
            names_it = " AND ".join(f"{table}.{own} = gone.{its}" for own, its in key.items())
            op.execute(KEEP_CHILDREN.format(table=table, parent=parent, names_it=names_it))
            op.execute(ON_DELETE.format(table=table, parent=parent))
            columns = ", ".join(key.values())
            op.execute(ON_CHANGE.format(table=table, changed=parent, columns=columns))


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("name", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("kinds", JSON, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
