"""The tables, with constraints that refuse rows which cannot be true.

Conventions: every `_at` is microseconds since the epoch, UTC, in a BIGINT, so that the three
databases compare times alike; flags are 0 or 1 for the same reason; JSON is text that the database
never looks into. `workspace_id` is the first column of every key, or folded into it, so that
sharding by workspace stays possible. The logs of a job (events, output) carry no foreign key: they
are written in a transaction that has the job's row and deleted in the one that deletes it, and the
check would cost as much as the insert.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
)
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.job import Priority, StopRequest
from ade.store.foreign_key_triggers import check_by_statement

NAMING = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
metadata = MetaData(naming_convention=NAMING)

Id = String(36).with_variant(UUID(as_uuid=False), "postgresql")
Name = String(200).with_variant(NVARCHAR(200), "mssql")
Word = String(20)
Digest = String(80)
Json = Text().with_variant(NVARCHAR(), "mssql")


def _id(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Id, nullable=nullable)


def _literal(value: str | int) -> ColumnElement[str | int]:
    """Write a constant into the SQL itself, so that partial indexes can be matched with it."""
    return literal_column(f"'{value}'" if isinstance(value, str) else str(value))


def _words(values: list[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Id, primary_key=True),
    Column("slug", String(63), nullable=False, unique=True),
    Column("name", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False, unique=True),
    Column("operator", SmallInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("operator IN (0, 1)", name="operator"),
)

members = Table(
    "members",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("role", Word, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    CheckConstraint("role IN ('viewer', 'editor', 'admin')", name="role"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("workspace_id", Id, ForeignKey("workspaces.id"), nullable=True),
    Column("role", Word, nullable=True),
    Column("label", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger, nullable=True),
    CheckConstraint("role IN ('viewer', 'editor', 'admin')", name="role"),
    Index("ix_api_keys_workspace", "workspace_id", "id"),
)

# What a browser holds instead of a key. It ends with its key: a revoked key authenticates no
# session, and a deleted one takes its sessions along.
sessions = Table(
    "sessions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("key_id", Id, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    Column("client", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    CheckConstraint("digest LIKE 'sha256:%'", name="digest"),
    CheckConstraint("last_seen_at >= created_at", name="last_seen_at"),
    CheckConstraint("expires_at > last_seen_at", name="expires_at"),
    Index("ix_sessions_user", "user_id", "id"),
    Index("ix_sessions_key", "key_id", "id"),
    Index("ix_sessions_expiry", "expires_at"),
)

# A used link is kept until it expires, so that its second use can be told from a wrong token.
login_links = Table(
    "login_links",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Digest, nullable=False, unique=True),
    Column("key_id", Id, ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger, nullable=True),
    CheckConstraint("digest LIKE 'sha256:%'", name="digest"),
    CheckConstraint("expires_at > created_at", name="expires_at"),
    Index("ix_login_links_key", "key_id", "id"),
    Index("ix_login_links_expiry", "expires_at"),
)

documents = Table(
    "documents",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("content_type", String(127), nullable=True),
    # Runs remember their document: one that was deleted is out of sight, and its row stays.
    Column("deleted_at", BigInteger, nullable=True),
    CheckConstraint("size_bytes >= 0", name="size"),
)

configurations = Table(
    "configurations",
    metadata,
    Column("workspace_id", Id, ForeignKey("workspaces.id"), primary_key=True),
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger, nullable=True),
)

# The files of a configuration as they are being edited; their contents are blobs.
draft_files = Table(
    "draft_files",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("configuration_id", Id, primary_key=True),
    Column("path", Name, primary_key=True),
    Column("digest", Digest, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
)

# What a configuration was at one moment: written once, never changed.
config_versions = Table(
    "config_versions",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    _id("configuration_id"),
    Column("sequence", Integer, nullable=False),
    Column("digest", Digest, nullable=False),
    # [[path, digest, size], ...] in the order of the paths.
    Column("manifest", Json, nullable=False),
    Column("created_by", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    UniqueConstraint("configuration_id", "sequence"),
    UniqueConstraint("configuration_id", "digest"),
    CheckConstraint("sequence > 0", name="sequence"),
)

# Which version of a configuration runs use by default, and which one is to become it when its
# build is ready.
activations = Table(
    "activations",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("configuration_id", Id, primary_key=True),
    _id("version_id", nullable=True),
    Column("activated_at", BigInteger, nullable=True),
    Column("activated_by", Name, nullable=True),
    _id("pending_version_id", nullable=True),
    Column("pending_by", Name, nullable=True),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "version_id"], ["config_versions.workspace_id", "config_versions.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "pending_version_id"],
        ["config_versions.workspace_id", "config_versions.id"],
    ),
    CheckConstraint(
        "(version_id IS NULL AND activated_at IS NULL AND activated_by IS NULL)"
        " OR (version_id IS NOT NULL AND activated_at IS NOT NULL AND activated_by IS NOT NULL)",
        name="active_version",
    ),
    CheckConstraint(
        "(pending_version_id IS NULL AND pending_by IS NULL)"
        " OR (pending_version_id IS NOT NULL AND pending_by IS NOT NULL)",
        name="pending_version",
    ),
)

# One prepared environment for each content of a configuration. The work is a job of kind `build`,
# named by `job_id`; the row says what became of it.
builds = Table(
    "builds",
    metadata,
    Column("workspace_id", Id, primary_key=True),
    Column("id", Id, primary_key=True),
    _id("configuration_id"),
    Column("fingerprint", Digest, nullable=False),
    Column("status", Word, nullable=False),
    Column("error", Json, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("finished_at", BigInteger, nullable=True),
    _id("version_id", nullable=True),
    # The digest of the resolved requirements; null is ADE's own environment.
    Column("environment", Digest, nullable=True),
    # Null if there was nothing to do.
    _id("job_id", nullable=True),
    ForeignKeyConstraint(
        ["workspace_id", "configuration_id"], ["configurations.workspace_id", "configurations.id"]
    ),
    ForeignKeyConstraint(
        ["workspace_id", "version_id"], ["config_versions.workspace_id", "config_versions.id"]
    ),
    UniqueConstraint("configuration_id", "fingerprint"),
    CheckConstraint(
        "(status = 'queued' AND job_id IS NOT NULL AND version_id IS NOT NULL"
        " AND started_at IS NULL AND finished_at IS NULL AND error IS NULL"
        " AND environment IS NULL)"
        " OR (status = 'ready' AND finished_at IS NOT NULL AND error IS NULL)"
        " OR (status = 'failed' AND finished_at IS NOT NULL AND error IS NOT NULL"
        " AND environment IS NULL)"
        " OR (status = 'cancelled' AND finished_at IS NOT NULL AND environment IS NULL)",
        name="shape",
    ),
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
    _id("rerun_of", nullable=True),
    _id("configuration_id", nullable=True),
    _id("document_id", nullable=True),
    _id("build_id", nullable=True),
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
    CheckConstraint(f"priority IN ({_words([p.value for p in Priority])})", name="priority"),
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
        f"stop_request IN ({_words([s.value for s in StopRequest])})", name="stop_request"
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
    return job.c.eligible == _literal(1)


def is_queued(job: FromClause) -> ColumnElement[bool]:
    """Match queued jobs."""
    return job.c.status == _literal("queued")


def is_running(job: FromClause) -> ColumnElement[bool]:
    """Match running jobs: those with a lease."""
    return job.c.status == _literal("running")


def holds_its_lane(job: FromClause) -> ColumnElement[bool]:
    """Match jobs that keep the rest of their lane waiting."""
    return job.c.holds_lane == _literal(1)


def is_held(job: FromClause) -> ColumnElement[bool]:
    """Match jobs that wait for something else than a worker: a time, a build, their lane."""
    waiting = job.c.status.in_([_literal("pending"), _literal("queued")])
    return and_(job.c.eligible == _literal(0), waiting)


def _partial(
    name: str, *columns: Column[object], where: ColumnElement[bool], unique: bool = False
) -> None:
    Index(
        name,
        *columns,
        unique=unique,
        postgresql_where=where,
        sqlite_where=where,
        mssql_where=where,
    )


_c = jobs.c
# The whole order of the queue: one short scan per workspace finds which job is next.
_partial("ix_jobs_eligible", _c.pool, _c.workspace_id, _c.rank, _c.id, where=is_eligible(jobs))
# Two running jobs on one target cannot be, whatever the code does.
_partial(
    "ux_jobs_live_target",
    _c.workspace_id,
    _c.target_id,
    where=and_(is_running(jobs), _c.target_id.is_not(None)),
    unique=True,
)
_partial(
    "ix_jobs_lane",
    _c.workspace_id,
    _c.target_id,
    _c.rank,
    _c.id,
    where=and_(is_queued(jobs), _c.target_id.is_not(None)),
)
_partial("ix_jobs_lane_holder", _c.workspace_id, _c.target_id, where=holds_its_lane(jobs))
_partial("ix_jobs_lease", _c.lease_expires_at, where=is_running(jobs))
# With the rank, because jobs with a negative one are not counted.
_partial("ix_jobs_held", _c.pool, _c.not_before, _c.rank, where=is_held(jobs))
# For the quota of a workspace: those that wait for a worker are counted along ix_jobs_eligible.
_partial("ix_jobs_held_in", _c.workspace_id, _c.pool, _c.rank, where=is_held(jobs))
# Empty while every worker runs every kind.
_partial(
    "ix_jobs_set_aside",
    _c.pool,
    _c.needs_kind,
    _c.rank,
    where=_c.needs_kind.is_not(None),
)
# The build that a job does the work of.
_partial(
    "ux_builds_job",
    builds.c.workspace_id,
    builds.c.job_id,
    where=builds.c.job_id.is_not(None),
    unique=True,
)

_build_id = requests.c.build_id
_partial("ix_requests_build", requests.c.workspace_id, _build_id, where=_build_id.is_not(None))

# One index for each filter of a list, which ends with the identifier: lists are in its order.
# Those by status are partial, so that no statement which knows the identifier of a job takes them.
_partial("ix_jobs_ended", _c.workspace_id, _c.status, _c.id, where=_c.finished_at.is_not(None))
_partial("ix_jobs_unfinished", _c.workspace_id, _c.status, _c.id, where=_c.finished_at.is_(None))
for _filtered in (_c.target_id, _c.evaluation):
    _partial(
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
    _partial(
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
    _id("job_id"),
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
    _id("job_id"),
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

# The workers that are running, and the kinds that each can run. A row that is not refreshed is
# deleted by the next sweep.
workers = Table(
    "workers",
    metadata,
    Column("name", Name, primary_key=True),
    Column("host", Name, nullable=False),
    # A JSON list of names.
    Column("kinds", Json, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    # How many jobs it takes at once; none while it drains.
    Column("slots", Integer, nullable=False),
    Column("drains_at", BigInteger, nullable=True),
    Column("block", Name, nullable=True),
    CheckConstraint("slots >= 0", name="slots"),
)

# The scalers that keep pilots on engines: which process decides, until when (a lease), and what it
# last saw and did.
scalers = Table(
    "scalers",
    metadata,
    Column("name", Name, primary_key=True),
    Column("engine", Name, nullable=False),
    Column("owner", Name, nullable=True),
    Column("lease_expires_at", BigInteger, nullable=True),
    Column("seen_at", BigInteger, nullable=False),
    Column("state", Json, nullable=False),
    CheckConstraint(
        "(owner IS NULL AND lease_expires_at IS NULL)"
        " OR (owner IS NOT NULL AND lease_expires_at IS NOT NULL)",
        name="lease",
    ),
)

# The orders to engines. A row is written before the order goes out, so that none is forgotten.
scale_blocks = Table(
    "scale_blocks",
    metadata,
    Column("name", Name, primary_key=True),
    Column("scaler", Name, ForeignKey("scalers.name"), nullable=False),
    Column("engine_id", Name, nullable=True),
    Column("status", Word, nullable=False),
    Column("detail", Json, nullable=False),
    Column("ordered_at", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=True),
    Column("registered_at", BigInteger, nullable=True),
    Column("left_at", BigInteger, nullable=True),
    Column("finished_at", BigInteger, nullable=True),
    CheckConstraint(
        "(status IN ('ordered', 'queued', 'running') AND finished_at IS NULL)"
        " OR (status IN ('ended', 'failed', 'cancelled') AND finished_at IS NOT NULL)",
        name="status",
    ),
    CheckConstraint("left_at IS NULL OR registered_at IS NOT NULL", name="left_at"),
    Index("ix_scale_blocks_scaler", "scaler", "finished_at"),
)

# What the worker contract knows of a job beside its status: the names under which people and agents
# find it, and what its agent reported. Found by the id alone: the contract has no workspaces.
agent_jobs = Table(
    "agent_jobs",
    metadata,
    Column("job_id", Id, primary_key=True),
    _id("workspace_id"),
    Column("job_name", Name, nullable=False),
    Column("pool", Word, nullable=False),
    # What the agent said last, and when it said anything about the job.
    Column("facts", Json, nullable=False),
    Column("reported_at", BigInteger, nullable=False),
    ForeignKeyConstraint(["workspace_id", "job_id"], ["requests.workspace_id", "requests.id"]),
    Index("ix_agent_jobs_workspace", "workspace_id", "job_id"),
)

# What the jobs of a pool of agents ask for: see `ade.domain.agent_pool`.
agent_pools = Table(
    "agent_pools",
    metadata,
    Column("name", Word, primary_key=True),
    Column("host", Name, nullable=True),
    Column("require_host", SmallInteger, nullable=False),
    # A JSON list.
    Column("labels", Json, nullable=False),
    CheckConstraint("require_host IN (0, 1)", name="require_host"),
    CheckConstraint("require_host = 0 OR host IS NOT NULL", name="required_host"),
)

# The agents that were heard of, and what their last heartbeats said.
hosts = Table(
    "hosts",
    metadata,
    Column("name", Name, primary_key=True),
    Column("first_seen_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    # When it last asked for work.
    Column("asked_at", BigInteger, nullable=True),
    # When `info` came, and what it was.
    Column("beat_at", BigInteger, nullable=True),
    Column("info", Json, nullable=False),
    CheckConstraint("seen_at >= first_seen_at", name="seen_at"),
)

# The agents that were enrolled, each with its key, as a digest. A code is traded for a key once;
# a key that was replaced may work a while longer. A revoked agent has neither.
agents = Table(
    "agents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False, unique=True),
    # A JSON list.
    Column("labels", Json, nullable=False),
    Column("key_digest", Digest, nullable=True),
    Column("old_key_digest", Digest, nullable=True),
    Column("old_key_expires_at", BigInteger, nullable=True),
    Column("code_digest", Digest, nullable=True),
    Column("code_expires_at", BigInteger, nullable=True),
    Column("created_at", BigInteger, nullable=False),
    Column("rotated_at", BigInteger, nullable=True),
    Column("revoked_at", BigInteger, nullable=True),
    Column("last_used_at", BigInteger, nullable=True),
    CheckConstraint(
        "(revoked_at IS NULL AND key_digest IS NOT NULL)"
        " OR (revoked_at IS NOT NULL AND key_digest IS NULL AND old_key_digest IS NULL"
        " AND code_digest IS NULL)",
        name="revoked",
    ),
    CheckConstraint(
        "(old_key_digest IS NULL AND old_key_expires_at IS NULL)"
        " OR (old_key_digest IS NOT NULL AND old_key_expires_at IS NOT NULL)",
        name="old_key",
    ),
    CheckConstraint(
        "(code_digest IS NULL AND code_expires_at IS NULL)"
        " OR (code_digest IS NOT NULL AND code_expires_at IS NOT NULL)",
        name="code",
    ),
    CheckConstraint(
        "(key_digest IS NULL OR key_digest LIKE 'sha256:%')"
        " AND (old_key_digest IS NULL OR old_key_digest LIKE 'sha256:%')"
        " AND (code_digest IS NULL OR code_digest LIKE 'sha256:%')",
        name="digests",
    ),
)
for _column in (agents.c.key_digest, agents.c.old_key_digest, agents.c.code_digest):
    _partial(f"ux_agents_{_column.name}", _column, where=_column.is_not(None), unique=True)

# What operators keep from starting: the jobs of a workspace, of a kind or of both, or whatever a
# worker would take. The scope stands for all of these.
queue_pauses = Table(
    "queue_pauses",
    metadata,
    Column("scope", Name, primary_key=True),
    _id("workspace_id", nullable=True),
    Column("kind", Name, nullable=True),
    Column("worker", Name, nullable=True),
    Column("reason", Json, nullable=False),
    Column("paused_by", Name, nullable=False),
    Column("paused_at", BigInteger, nullable=False),
    CheckConstraint("worker IS NULL OR (workspace_id IS NULL AND kind IS NULL)", name="worker"),
)

# Secrets that all servers of this database share; the first server that needs one makes it.
secrets = Table(
    "secrets",
    metadata,
    Column("name", Word, primary_key=True),
    Column("value", String(100), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# One row that a submitter updates before it counts, so that two never count at the same time.
gates = Table(
    "gates",
    metadata,
    Column("name", Word, primary_key=True),
    Column("passed", BigInteger, nullable=False),
)

# Environments as archives among the blobs: what one host installed, others unpack. Those with
# another interpreter install the same lock themselves.
environment_archives = Table(
    "environment_archives",
    metadata,
    Column("environment", Digest, primary_key=True),
    Column("archive", Digest, nullable=False),
    Column("archive_bytes", BigInteger, nullable=False),
    Column("installed_bytes", BigInteger, nullable=False),
    # With the lock, what the environment's digest is made of.
    Column("interpreter", Name, nullable=False),
    Column("installer", Name, nullable=False),
    Column("source_builds", SmallInteger, nullable=False),
    Column("lock", Json, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # When a host last said that it uses it.
    Column("used_at", BigInteger, nullable=False),
    CheckConstraint(
        "environment LIKE 'sha256:%' AND archive LIKE 'sha256:%'",
        name="digests",
    ),
    CheckConstraint(
        "archive_bytes > 0 AND installed_bytes >= 0 AND used_at >= created_at"
        " AND source_builds IN (0, 1)",
        name="shape",
    ),
)
