"""The tables of jobs, and of what attempts leave."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    and_,
)
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.job import Priority, StopRequest
from ade.store.foreign_key_triggers import check_by_statement
from ade.store.schema.catalogue import builds
from ade.store.schema.columns import (
    Digest,
    Id,
    Json,
    Name,
    Word,
    id_column,
    literal,
    metadata,
    partial_index,
    words,
)

# The valid rows: terminal if and only if finished, running if and only if leased. One short
# expression, because PostgreSQL parses it for each statement, and without IN lists, because SQLite
# builds a tree for each of them. The cases that most writes are about come first.
_SHAPES = {
    "status = 'queued' AND finished_at IS NULL AND eligible IN (0, 1)"
    " AND lease_owner IS NULL AND lease_expires_at IS NULL AND stop_request IS NULL": 1,
    "status = 'running' AND finished_at IS NULL AND eligible = 0"
    " AND lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL AND fence > 0": 1,
    "eligible <> 0 OR lease_owner IS NOT NULL OR lease_expires_at IS NOT NULL"
    " OR stop_request IS NOT NULL": 0,
    "finished_at IS NOT NULL AND (status = 'succeeded' OR status = 'failed'"
    " OR status = 'timed_out' OR status = 'cancelled')": 1,
    "finished_at IS NULL"
    " AND (status = 'paused' OR status = 'pending' AND not_before IS NOT NULL)": 1,
}

_SHAPE = " ".join(f"WHEN {found} THEN {is_right}" for found, is_right in _SHAPES.items())

# What a job has to do: written once, never changed. Kept apart from the job's state, so that the
# rows which change are short.
requests = Table(
    "requests",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("id", Id, primary_key=True),
    Column("kind", String(63), nullable=False),
    Column("priority", Word, nullable=False),
    Column("execution_key", Digest, nullable=True),
    id_column("rerun_of", nullable=True),
    id_column("configuration_id", nullable=True),
    id_column("document_id", nullable=True),
    id_column("build_id", nullable=True),
    Column("submitted_by", Name, nullable=False),
    Column("submitted_at", BigInteger, nullable=False),
    Column("limits", Json, nullable=False),
    Column("payload", Json, nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "document_id"], ["documents.workspace_id", "documents.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    ForeignKeyConstraint(["workspace_id", "build_id"], ["builds.workspace_id", "builds.id"]),
    CheckConstraint(f"priority IN ({words([p.value for p in Priority])})", name="priority"),
    CheckConstraint(
        "kind <> 'normalize' OR (configuration_id IS NOT NULL"
        " AND document_id IS NOT NULL AND build_id IS NOT NULL)",
        name="run_is_complete",
    ),
)

check_by_statement(requests)

# The state of a job: inserted and deleted together with its request, without which it cannot be.
jobs = Table(
    "jobs",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    Column("pool", Word, nullable=False),
    Column("status", Word, nullable=False),
    # May the claim take it now? Head of its lane, build settled, time come.
    Column("eligible", SmallInteger, nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("target_id", Name, nullable=True),
    # On a target: no other job of the lane may become eligible while this is 1.
    Column("holds_lane", SmallInteger, nullable=False),
    Column("not_before", BigInteger, nullable=True),
    # Set aside: it waits for a worker that runs this kind (see `ade.stages.claim`).
    Column("needs_kind", String(63), nullable=True),
    Column("fence", Integer, nullable=False),
    Column("retries_left", Integer, nullable=False),
    Column("lease_owner", Name, nullable=True),
    Column("lease_expires_at", BigInteger, nullable=True),
    Column("stop_request", Word, nullable=True),
    Column("event_seq", Integer, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("finished_at", BigInteger, nullable=True),
    Column("timeout_ms", BigInteger, nullable=False),
    Column("progress", Json, nullable=True),
    Column("usage", Json, nullable=True),
    Column("isolation", Json, nullable=True),
    Column("error", Json, nullable=True),
    # The newest lines of the event log (see `ade.store.job_log`).
    Column("history", Json, nullable=False),
    Column("result", Json, nullable=True),
    # What a run says of its own result: how usable it is, and what was counted.
    Column("evaluation", Word, nullable=True),
    Column("counts", Json, nullable=True),
    CheckConstraint(f"CASE {_SHAPE} ELSE 0 END = 1", name="shape"),
    CheckConstraint(
        f"stop_request IN ({words([s.value for s in StopRequest])})", name="stop_request"
    ),
    CheckConstraint(
        "holds_lane = 0 OR (holds_lane = 1 AND target_id IS NOT NULL)", name="lane_has_target"
    ),
    CheckConstraint(
        "target_id IS NULL OR holds_lane = 1 OR (eligible = 0 AND status <> 'running')",
        name="head_holds_lane",
    ),
    CheckConstraint("fence >= 0 AND retries_left >= 0 AND event_seq >= 0", name="counts"),
    CheckConstraint(
        "needs_kind IS NULL OR (status = 'queued' AND eligible = 0 AND not_before IS NULL)",
        name="set_aside",
    ),
    CheckConstraint(
        "evaluation IS NULL OR (finished_at IS NOT NULL AND counts IS NOT NULL"
        " AND (evaluation = 'complete' OR evaluation = 'partial' OR evaluation = 'unusable'))",
        name="evaluation",
    ),
    ForeignKeyConstraint(["workspace_id", "id"], ["requests.workspace_id", "requests.id"]),
)

check_by_statement(jobs)


def is_eligible(job: FromClause) -> ColumnElement[bool]:
    """Match jobs that the claim may take now."""
    return job.c.eligible == literal(1)


def is_queued(job: FromClause) -> ColumnElement[bool]:
    """Match queued jobs."""
    return job.c.status == literal("queued")


def is_running(job: FromClause) -> ColumnElement[bool]:
    """Match running jobs: those with a lease."""
    return job.c.status == literal("running")


def holds_its_lane(job: FromClause) -> ColumnElement[bool]:
    """Match jobs that keep the rest of their lane waiting."""
    return job.c.holds_lane == literal(1)


def is_held(job: FromClause) -> ColumnElement[bool]:
    """Match jobs that wait for something else than a worker: a time, a build, their lane."""
    waiting = job.c.status.in_([literal("pending"), literal("queued")])
    return and_(job.c.eligible == literal(0), waiting)


_c = jobs.c

# The whole order of the queue: one short scan per workspace finds which job is next.
partial_index("ix_jobs_eligible", _c.pool, _c.workspace_id, _c.rank, _c.id, where=is_eligible(jobs))
# Two running jobs on one target cannot be, whatever the code does.
partial_index(
    "ux_jobs_live_target",
    _c.workspace_id,
    _c.target_id,
    where=and_(is_running(jobs), _c.target_id.is_not(None)),
    unique=True,
)
partial_index(
    "ix_jobs_lane",
    _c.workspace_id,
    _c.target_id,
    _c.rank,
    _c.id,
    where=and_(is_queued(jobs), _c.target_id.is_not(None)),
)
partial_index("ix_jobs_lane_holder", _c.workspace_id, _c.target_id, where=holds_its_lane(jobs))
partial_index("ix_jobs_lease", _c.lease_expires_at, where=is_running(jobs))
# With the rank, because jobs with a negative one are not counted.
partial_index("ix_jobs_held", _c.pool, _c.not_before, _c.rank, where=is_held(jobs))
# For the quota of a workspace: those that wait for a worker are counted along ix_jobs_eligible.
partial_index("ix_jobs_held_in", _c.workspace_id, _c.pool, _c.rank, where=is_held(jobs))
# Empty while every worker runs every kind.
partial_index(
    "ix_jobs_set_aside",
    _c.pool,
    _c.needs_kind,
    _c.rank,
    where=_c.needs_kind.is_not(None),
)
# The build that a job does the work of.
partial_index(
    "ux_builds_job",
    builds.c.workspace_id,
    builds.c.job_id,
    where=builds.c.job_id.is_not(None),
    unique=True,
)
_build_id = requests.c.build_id
partial_index("ix_requests_build", requests.c.workspace_id, _build_id, where=_build_id.is_not(None))
# One index for each filter of a list, which ends with the identifier: lists are in its order.
# Those by status are partial, so that no statement which knows the identifier of a job takes them.
partial_index("ix_jobs_ended", _c.workspace_id, _c.status, _c.id, where=_c.finished_at.is_not(None))
partial_index(
    "ix_jobs_unfinished", _c.workspace_id, _c.status, _c.id, where=_c.finished_at.is_(None)
)
for _filtered in (_c.target_id, _c.evaluation):
    partial_index(
        f"ix_jobs_{_filtered.name}",
        _c.workspace_id,
        _filtered,
        _c.id,
        where=_filtered.is_not(None),
    )
_r = requests.c
for _filtered in (_r.kind, _r.priority):
    Index(f"ix_requests_{_filtered.name}", _r.workspace_id, _filtered, _r.id)
for _filtered in (_r.configuration_id, _r.document_id):
    partial_index(
        f"ix_requests_{_filtered.name}",
        _r.workspace_id,
        _filtered,
        _r.id,
        where=_filtered.is_not(None),
    )

# How many jobs there are, kept in the transactions that change them (see `ade.store.job_counts`).
# Half of each page stays free, so that PostgreSQL changes a row within its page.
job_counts = Table(
    "job_counts",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("pool", Word, primary_key=True),
    Column("kind", String(63), primary_key=True),
    Column("priority", Word, primary_key=True),
    Column("status", Word, primary_key=True),
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("jobs", BigInteger, nullable=False),
    CheckConstraint("shard >= 0", name="shard"),
    sqlite_with_rowid=False,
    postgresql_with={"fillfactor": 50},
)

events = Table(
    "events",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("job_id", Id, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("type", String(40), nullable=False),
    Column("data", Json, nullable=False),
    CheckConstraint("seq > 0", name="seq"),
    sqlite_with_rowid=False,
)

# What attempts write to their streams, while they run: each row holds consecutive pieces, and `seq`
# is the place of the last one. Deleted with the job, like its events.
output_batches = Table(
    "output_batches",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("job_id", Id, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("starts", BigInteger, nullable=False),
    Column("ends", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("pieces", Json, nullable=False),
    CheckConstraint("seq > 0 AND attempt > 0 AND starts >= 0 AND ends > starts", name="place"),
)

# The files that results name. Written in the transaction that records the result, deleted with the
# job; what no row names is collected.
artifacts = Table(
    "artifacts",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    id_column("job_id"),
    Column("name", String(255).with_variant(NVARCHAR(255), "mssql"), nullable=False),
    Column("digest", Digest, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("content_type", String(127), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("size_bytes >= 0", name="size_bytes"),
    # A signed link names an artifact and nothing else.
    UniqueConstraint("id"),
    Index("ix_artifacts_job", "workspace_id", "job_id"),
    Index("ix_artifacts_digest", "workspace_id", "digest"),
)

# Which job is registered for a piece of work, so that duplicates run once. The keys are random, and
# each new one changes another page: they are short, and the workspace is part of the hash.
executions = Table(
    "executions",
    metadata,
    Column("work_id", Id, primary_key=True),
    id_column("job_id"),
    sqlite_with_rowid=False,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("principal", Name, primary_key=True),
    Column("endpoint", String(200), primary_key=True),
    Column("key", Name, primary_key=True),
    Column("body_digest", Digest, nullable=False),
    Column("response_status", Integer, nullable=True),
    Column("response_body", Json, nullable=True),
    Column("job_id", Id, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_idempotency_keys_created", "created_at"),
)

# One row that a submitter updates before it counts, so that two never count at the same time.
gates = Table(
    "gates",
    metadata,
    Column("name", Word, primary_key=True),
    Column("passed", BigInteger, nullable=False),
)
