"""Make the work of a build a job, and remember which version of a configuration is active.

A build that was waiting or under way becomes a job that waits, under the build's own id. The newest
version with a ready build becomes the active one. Processes of an older version must be stopped
before: they look for builds in columns that are gone afterwards.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0009_builds_are_jobs"
down_revision = "0008_parents_by_statement"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
NAME = sa.String(200).with_variant(sa.NVARCHAR(200), "mssql")
DIGEST = sa.String(80)
WORD = sa.String(20)
JSON = sa.Text().with_variant(sa.NVARCHAR(), "mssql")

SHAPE = (
    "(status = 'queued' AND job_id IS NOT NULL AND version_id IS NOT NULL"
    " AND finished_at IS NULL AND error IS NULL AND environment IS NULL)"
    " OR (status = 'ready' AND finished_at IS NOT NULL AND error IS NULL)"
    " OR (status = 'failed' AND finished_at IS NOT NULL AND error IS NOT NULL"
    " AND environment IS NULL)"
    " OR (status = 'cancelled' AND finished_at IS NOT NULL AND environment IS NULL)"
)
ACTIVE = (
    "(version_id IS NULL AND activated_at IS NULL AND activated_by IS NULL)"
    " OR (version_id IS NOT NULL AND activated_at IS NOT NULL AND activated_by IS NOT NULL)"
)
PENDING = (
    "(pending_version_id IS NULL AND pending_by IS NULL)"
    " OR (pending_version_id IS NOT NULL AND pending_by IS NOT NULL)"
)
WAITING = "eligible = 0 AND status IN ('pending', 'queued')"
UNFINISHED = "status IN ('queued', 'building')"
UNKNOWN = (
    '{"category": "INTERNAL_ERROR", "code": "BUILDER_ERROR",'
    ' "message": "The reason was not recorded.", "details": {}}'
)
LIMITS = (
    '{"timeout_ms": 600000, "cpu_ms": 60000, "memory_mb": 512, "max_output_kb": 256,'
    ' "max_artifacts": 0}'
)
# Before every job that somebody submitted, and not counted as waiting.
RANK_OFFSET = 1 << 60
PAYLOAD = (
    'CONCAT(\'{"job_type": "build", "inputs": {"build_id": "\', id,'
    ' \'", "config_version_id": "\', version_id, \'"}}\')'
)
LINE_FEED = {"sqlite": "char(10)", "postgresql": "chr(10)", "mssql": "CHAR(10)"}
KEPT = (
    "workspace_id, id, configuration_id, fingerprint, status, error, created_at, started_at,"
    " finished_at, version_id, environment, job_id"
)


def upgrade() -> None:
    """Change the rows, then the tables that hold them."""
    dialect = op.get_context().dialect.name
    if dialect == "postgresql":
        op.execute("LOCK TABLE builds IN ACCESS EXCLUSIVE MODE")
    op.add_column("builds", sa.Column("job_id", ID, nullable=True))
    if dialect == "sqlite":
        # SQLite can drop neither constraints nor the columns that they name.
        op.execute("CREATE TABLE builds_before AS SELECT * FROM builds")
        op.execute("DROP TABLE builds")
        _create_builds()
        _change_rows("builds_before", dialect)
        op.execute(f"INSERT INTO builds ({KEPT}) SELECT {KEPT} FROM builds_before")
        op.execute("DROP TABLE builds_before")
    else:
        for name in ("building_iff_leased", "settled_iff_finished_at", "status"):
            op.drop_constraint(op.f(f"ck_builds_{name}"), "builds", type_="check")
        _change_rows("builds", dialect)
        for name in ("fence", "lease_owner", "lease_expires_at", "losses"):
            op.drop_column("builds", name, mssql_drop_default=name == "losses")
        op.create_check_constraint(op.f("ck_builds_shape"), "builds", SHAPE)
        op.create_foreign_key(
            op.f("fk_builds_workspace_id_version_id"),
            "builds",
            "config_versions",
            ["workspace_id", "version_id"],
            ["workspace_id", "id"],
        )
    _create_indexes()
    _create_activations()
    _activate_newest()


def _create_builds() -> None:
    op.create_table(
        "builds",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("configuration_id", ID, nullable=False),
        sa.Column("fingerprint", DIGEST, nullable=False),
        sa.Column("status", WORD, nullable=False),
        sa.Column("error", JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("version_id", ID, nullable=True),
        sa.Column("environment", DIGEST, nullable=True),
        sa.Column("job_id", ID, nullable=True),
        sa.CheckConstraint(SHAPE, name=op.f("ck_builds_shape")),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_builds_workspace_id_configuration_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "version_id"],
            ["config_versions.workspace_id", "config_versions.id"],
            name=op.f("fk_builds_workspace_id_version_id"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "id", name=op.f("pk_builds")),
        sa.UniqueConstraint(
            "configuration_id", "fingerprint", name=op.f("uq_builds_configuration_id_fingerprint")
        ),
    )


def _change_rows(builds: str, dialect: str) -> None:
    """Give every build that has not ended a job, and every row the shape that it must have."""
    op.execute(
        f"UPDATE {builds} SET status = 'cancelled', finished_at = created_at"
        f" WHERE {UNFINISHED} AND version_id IS NULL"
    )
    op.execute(f"UPDATE {builds} SET error = '{UNKNOWN}' WHERE status = 'failed' AND error IS NULL")
    op.execute(f"UPDATE {builds} SET error = NULL WHERE status IN ('ready', 'queued', 'building')")
    op.execute(f"UPDATE {builds} SET environment = NULL WHERE status <> 'ready'")
    op.execute(f"UPDATE {builds} SET job_id = id, started_at = NULL WHERE {UNFINISHED}")
    waiting = f"FROM {builds} WHERE {UNFINISHED}"
    line = f"CONCAT('1 ', created_at, ' job.queued {{}}', {LINE_FEED[dialect]})"
    payload = PAYLOAD
    if dialect == "sqlite":
        payload, line = _by_operator(payload), _by_operator(line)
    op.execute(
        "INSERT INTO requests (workspace_id, id, kind, priority, configuration_id, submitted_by,"
        " submitted_at, limits, payload)"
        f" SELECT workspace_id, id, 'build', 'normal', configuration_id, 'upgrade', created_at,"
        f" '{LIMITS}', {payload} {waiting}"
    )
    op.execute(
        "INSERT INTO jobs (workspace_id, id, pool, status, eligible, rank, holds_lane, fence,"
        " retries_left, event_seq, timeout_ms, history)"
        f" SELECT workspace_id, id, 'local', 'queued', 1, created_at - {RANK_OFFSET}, 0, 0,"
        f" 2, 1, 600000, {line} {waiting}"
    )
    op.execute(f"UPDATE {builds} SET status = 'queued' WHERE status = 'building'")
    _remember_made(builds, dialect)
    _wake_forgotten_runs(builds)


def _wake_forgotten_runs(builds: str) -> None:
    """Let the next sweep find runs whose build ended while they were not notified."""
    settled = (
        f"SELECT 1 FROM requests r JOIN {builds} b ON b.workspace_id = r.workspace_id"
        " AND b.id = r.build_id WHERE b.status IN ('ready', 'failed', 'cancelled')"
        " AND r.workspace_id = jobs.workspace_id AND r.id = jobs.id"
    )
    op.execute(
        "UPDATE jobs SET not_before = 0 WHERE status = 'queued' AND eligible = 0"
        f" AND not_before IS NULL AND EXISTS ({settled})"
    )


def _remember_made(builds: str, dialect: str) -> None:
    """Give builds that are ready the job that made them, so that they are not made again."""
    ready = f"FROM {builds} WHERE status = 'ready' AND version_id IS NOT NULL"
    started_at = "COALESCE(started_at, created_at)"
    lines = (
        f"CONCAT('1 ', created_at, ' job.queued {{}}', {LINE_FEED[dialect]}, '2 ', {started_at},"
        f" ' job.started {{\"attempt\": 1}}', {LINE_FEED[dialect]}, '3 ', finished_at,"
        f" ' job.succeeded {{\"attempt\": 1}}', {LINE_FEED[dialect]})"
    )
    payload = PAYLOAD
    if dialect == "sqlite":
        lines, payload = _by_operator(lines), _by_operator(payload)
    op.execute(
        "INSERT INTO requests (workspace_id, id, kind, priority, configuration_id, submitted_by,"
        " submitted_at, limits, payload)"
        " SELECT workspace_id, id, 'build', 'normal', configuration_id, 'upgrade', created_at,"
        f" '{LIMITS}', {payload} {ready}"
    )
    op.execute(
        "INSERT INTO jobs (workspace_id, id, pool, status, eligible, rank, holds_lane, fence,"
        " retries_left, event_seq, started_at, finished_at, timeout_ms, history)"
        f" SELECT workspace_id, id, 'local', 'succeeded', 0, created_at - {RANK_OFFSET}, 0, 1,"
        f" 0, 3, {started_at}, finished_at, 600000, {lines} {ready}"
    )
    op.execute(f"UPDATE {builds} SET job_id = id WHERE status = 'ready' AND version_id IS NOT NULL")


def _by_operator(call: str) -> str:
    """Write CONCAT as older releases of SQLite understand it."""
    inner = call.removeprefix("CONCAT(").removesuffix(")")
    parts = [part.strip() for part in inner.split(", ")]
    joined, text = [], ""
    for part in parts:  # a comma within a text or within a call separates nothing
        text = f"{text}, {part}" if text else part
        if text.count("'") % 2 == 0 and text.count("(") == text.count(")"):
            joined.append(text)
            text = ""
    return " || ".join(joined)


def _create_indexes() -> None:
    """Count waiting jobs without those of a negative rank, from the index alone."""
    for name, columns in (
        ("ix_jobs_held", ["pool", "not_before", "rank"]),
        ("ix_jobs_held_in", ["workspace_id", "pool", "rank"]),
    ):
        op.drop_index(op.f(name), table_name="jobs")
        _index(name, "jobs", columns, WAITING)
    _index("ux_builds_job", "builds", ["workspace_id", "job_id"], "job_id IS NOT NULL", unique=True)


def _index(name: str, table: str, columns: list[str], where: str, **options: Any) -> None:
    condition = sa.text(where)
    op.create_index(
        name,
        table,
        columns,
        sqlite_where=condition,
        postgresql_where=condition,
        mssql_where=condition,
        **options,
    )


def _create_activations() -> None:
    op.create_table(
        "activations",
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("configuration_id", ID, nullable=False),
        sa.Column("version_id", ID, nullable=True),
        sa.Column("activated_at", sa.BigInteger(), nullable=True),
        sa.Column("activated_by", NAME, nullable=True),
        sa.Column("pending_version_id", ID, nullable=True),
        sa.Column("pending_by", NAME, nullable=True),
        sa.CheckConstraint(ACTIVE, name=op.f("ck_activations_active_version")),
        sa.CheckConstraint(PENDING, name=op.f("ck_activations_pending_version")),
        sa.ForeignKeyConstraint(
            ["workspace_id", "configuration_id"],
            ["configurations.workspace_id", "configurations.id"],
            name=op.f("fk_activations_workspace_id_configuration_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "pending_version_id"],
            ["config_versions.workspace_id", "config_versions.id"],
            name=op.f("fk_activations_workspace_id_pending_version_id"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "version_id"],
            ["config_versions.workspace_id", "config_versions.id"],
            name=op.f("fk_activations_workspace_id_version_id"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", "configuration_id", name=op.f("pk_activations")),
    )


def _activate_newest() -> None:
    """Take the newest version that has a ready build for the active one, as runs did in effect."""
    ready = (
        "SELECT v.workspace_id, v.configuration_id, MAX(v.sequence) AS sequence"
        " FROM config_versions v JOIN builds b"
        " ON b.workspace_id = v.workspace_id AND b.version_id = v.id"
        " WHERE b.status = 'ready' GROUP BY v.workspace_id, v.configuration_id"
    )
    op.execute(
        "INSERT INTO activations"
        " (workspace_id, configuration_id, version_id, activated_at, activated_by)"
        " SELECT v.workspace_id, v.configuration_id, v.id, v.created_at, v.created_by"
        f" FROM config_versions v JOIN ({ready}) newest"
        " ON newest.workspace_id = v.workspace_id"
        " AND newest.configuration_id = v.configuration_id AND newest.sequence = v.sequence"
    )
