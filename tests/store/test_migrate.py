"""The migrations lead from nothing to the schema, once, however many processes ask for it."""

import importlib.util
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import column, create_engine, make_url, table, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import NullPool
from tests.databases import SqlDatabase, with_driver
from tests.store.acts import Acts

from ade.clock import ManualClock
from ade.domain.errors import Unavailable
from ade.domain.ids import uuid7
from ade.domain.keys import work_id
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store import migrate, schema

pytestmark = pytest.mark.slow

REVISIONS = [
    "0001_kernel",
    "0002_library",
    "0003_artifacts",
    "0004_workspace_queue",
    "0005_build_losses",
    "0006_shorter_shape",
    "0007_short_executions",
    "0008_parents_by_statement",
    "0009_builds_are_jobs",
    "0010_rows_that_belong_together",
    "0011_sessions",
    "0012_evaluations",
    "0013_live_output",
    "0014_pilots",
    "0015_agent_jobs",
    "0016_agents",
    "0017_environment_archives",
    "0018_queue_pauses",
    "0019_counts_of_jobs",
]
HEAD = REVISIONS[-1]


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> str:
    """Give a database without any table."""
    if database_url.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/folder/that/is/not/there/ade.db"
    with SqlDatabase("postgresql", database_url).connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    return database_url


def test_upgrade_from_nothing(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    assert migrate.pending(empty_url) == REVISIONS

    assert migrate.upgrade(empty_url) == REVISIONS

    assert migrate.current(empty_url) == HEAD
    assert migrate.pending(empty_url) == []
    assert migrate.upgrade(empty_url) == []


def test_upgrade_opens_the_admission_gate(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    with SqlDatabase("", empty_url).connect() as connection:
        assert connection.execute(text("SELECT name, passed FROM gates")).all() == [
            ("admission", 0)
        ]


def test_looking_creates_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ade.db"
    migrate.pending(url)
    migrate.current(url)
    assert list(tmp_path.iterdir()) == []


def test_the_schema_has_not_drifted_from_the_migrations(database_url: str) -> None:
    with SqlDatabase("", database_url).connect() as connection:
        opts: dict[str, Any] = {"compare_type": True}
        if connection.dialect.name == "postgresql":
            opts["include_object"] = _is_compared
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, schema.metadata) == []


def _is_compared(thing: Any, name: str, kind: str, reflected: bool, other: Any) -> bool:
    """Leave out the keys that a trigger replaces: it is compared below."""
    return kind != "foreign_key_constraint" or thing.table.name not in ("requests", "jobs")


# compare_metadata does not look at CHECK constraints, triggers nor the condition of an index.
_DEFINED = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace"
        " UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        " UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal"
        " UNION ALL SELECT proname || '()', regexp_replace(prosrc, '\\s+', ' ', 'g') FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace"
    ),
}


def _definitions(url: str) -> dict[str, list[str]]:
    name = make_url(url).get_backend_name()
    with SqlDatabase(name, url).connect() as connection:
        rows = connection.execute(text(_DEFINED[name])).all()
    found = {name: _clauses(sql) for name, sql in rows}
    return {name: clauses for name, clauses in found.items() if not name.startswith("alembic")}


def _clauses(sql: str) -> list[str]:
    """Compare a CREATE TABLE by its parts: their order means nothing.

    SQLite writes a column that was added later on the line of the last one before it.
    """
    lines = [line.strip().rstrip(",") for line in sql.splitlines()]
    is_column = [not line.startswith(("CONSTRAINT", "CREATE", "CHECK")) for line in lines]
    return sorted(
        part
        for line, column in zip(lines, is_column, strict=True)
        for part in (line.split(", ") if column else [line])
    )


def test_every_constraint_and_index_is_as_in_the_schema(
    database_url: str, empty_url: str, tmp_path: Path
) -> None:
    migrate.upgrade(empty_url)
    migrated = _definitions(empty_url)
    bare_url = empty_url.replace("ade.db", "bare.db")
    if bare_url == empty_url:
        with SqlDatabase("postgresql", empty_url).connect() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    engine = create_engine(with_driver(bare_url), poolclass=NullPool)
    schema.metadata.create_all(engine)
    engine.dispose()
    assert migrated == _definitions(bare_url)


def _upgrade_up_to(revision: str, url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Apply what comes before a revision, and return what is left."""
    at = REVISIONS.index(revision)
    monkeypatch.setattr(migrate, "HEAD", REVISIONS[at - 1])
    migrate.upgrade(url)
    monkeypatch.undo()
    return REVISIONS[at:]


def test_jobs_outlive_the_rewriting_of_their_table(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _upgrade_up_to("0006_shorter_shape", empty_url, monkeypatch)
    ids = {"workspace_id": uuid7(1, 1), "id": uuid7(1, 2)}
    job = ids | {"pool": "local", "status": "queued", "eligible": 1, "rank": 1, "holds_lane": 0}
    job |= {"fence": 0, "retries_left": 2, "event_seq": 1, "timeout_ms": 1, "history": "é\n"}
    request = {"kind": "echo", "priority": "normal", "submitted_by": "someone", "submitted_at": 1}
    request |= {"limits": "{}", "payload": "{}"}
    with SqlDatabase("", empty_url).connect() as connection:
        workspace = {"id": ids["workspace_id"], "slug": "w", "name": "w", "created_at": 1}
        _insert(connection, "workspaces", **workspace)
        _insert(connection, "requests", **ids, **request)
        _insert(connection, "jobs", **job)
        before = dict(connection.execute(text("SELECT * FROM jobs")).mappings().one())
    assert migrate.upgrade(empty_url) == left
    with SqlDatabase("", empty_url).connect() as connection:
        after = dict(connection.execute(text("SELECT * FROM jobs")).mappings().one())
        assert after == before | {"needs_kind": None, "evaluation": None, "counts": None}
        with pytest.raises(IntegrityError, match="shape"):
            connection.execute(schema.jobs.update().values(status="running"))


def test_jobs_stand_for_their_work_under_its_shorter_name(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _upgrade_up_to("0007_short_executions", empty_url, monkeypatch)
    workspace, keys = uuid7(1, 1), ["sha256:" + "ab" * 32, "é"]
    ids = (column("workspace_id", schema.Id), column("job_id", schema.Id))
    before = table("executions", *ids, column("execution_key", schema.Digest))
    with SqlDatabase("", empty_url).connect() as connection:
        for number, key in enumerate(keys):
            values = {"execution_key": key, "job_id": uuid7(1, number)}
            connection.execute(before.insert().values(workspace_id=workspace, **values))
    assert migrate.upgrade(empty_url) == left
    with SqlDatabase("", empty_url).connect() as connection:
        found = connection.execute(schema.executions.select()).all()
    wanted = {work_id(workspace, key): uuid7(1, number) for number, key in enumerate(keys)}
    assert {row.work_id.replace("-", ""): row.job_id for row in found} == wanted


WORKSPACE, CONFIGURATION, DOCUMENT = uuid7(1, 1), uuid7(1, 2), uuid7(1, 3)
OLD_BUILDS = {
    # status: (lease, finished, error, environment), one version each
    "queued": (False, False, None, None),
    "building": (True, False, None, None),
    "failed": (False, True, '{"message": "no such package"}', None),
    "cancelled": (False, True, None, None),
    "ready": (False, True, None, "sha256:e"),
}


def _insert(connection: Any, name: str, /, **values: Any) -> None:
    kinds = {"id": schema.Id, "workspace_id": schema.Id}
    columns = [column(key, kinds.get(key, _id_type(key))) for key in values]
    connection.execute(table(name, *columns).insert().values(values))


def _id_type(name: str) -> Any:
    return schema.Id if name.endswith("_id") and name != "target_id" else None


def _fill_with_builds(connection: Any) -> dict[str, str]:
    """Insert a build in every status of before, each with a run that waits; return their ids."""
    common = {"workspace_id": WORKSPACE, "created_at": 10}
    _insert(connection, "workspaces", id=WORKSPACE, slug="w", name="w", created_at=1)
    _insert(connection, "configurations", id=CONFIGURATION, name="c", **common)
    _insert(
        connection, "documents", id=DOCUMENT, name="d", digest="sha256:d", size_bytes=1, **common
    )
    ids = {}
    of_configuration = {"configuration_id": CONFIGURATION, **common}
    for number, (status, (leased, finished, error, environment)) in enumerate(
        OLD_BUILDS.items(), 1
    ):
        version_id, ids[status] = uuid7(2, number), uuid7(3, number)
        _insert(
            connection,
            "config_versions",
            id=version_id,
            sequence=number,
            digest=f"sha256:{number}",
            manifest="[]",
            created_by="someone",
            **of_configuration,
        )
        _insert(
            connection,
            "builds",
            id=ids[status],
            version_id=version_id,
            fingerprint=f"sha256:{number}",
            status=status,
            fence=number,
            lease_owner="worker" if leased else None,
            lease_expires_at=99 if leased else None,
            error=error,
            started_at=11,
            finished_at=12 if finished else None,
            environment=environment,
            **of_configuration,
        )
        _insert_run(connection, uuid7(4, number), ids[status])
    return ids


def _insert_run(connection: Any, run_id: str, build_id: str) -> None:
    """Insert a run that waits for a build."""
    named = {"workspace_id": WORKSPACE, "id": run_id}
    parents = {"configuration_id": CONFIGURATION, "document_id": DOCUMENT, "build_id": build_id}
    request: dict[str, Any] = {"kind": "normalize", "priority": "normal", "submitted_by": "someone"}
    request |= {"submitted_at": 10, "limits": "{}", "payload": "{}"}
    _insert(connection, "requests", **named, **parents, **request)
    job: dict[str, Any] = {
        "pool": "local",
        "status": "queued",
        "eligible": 0,
        "rank": 10,
        "holds_lane": 0,
    }
    job |= {"fence": 0, "retries_left": 2, "event_seq": 1, "timeout_ms": 1, "history": ""}
    _insert(connection, "jobs", **named, **job)


def test_builds_that_have_not_ended_become_jobs(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _upgrade_up_to("0009_builds_are_jobs", empty_url, monkeypatch)
    with SqlDatabase("", empty_url).connect() as connection:
        ids = _fill_with_builds(connection)
    assert migrate.upgrade(empty_url) == left
    with SqlDatabase("", empty_url).connect() as connection:
        builds = {row.id: row for row in connection.execute(schema.builds.select())}
        requests = {row.id: row for row in connection.execute(schema.requests.select())}
        jobs = {row.id: row for row in connection.execute(schema.jobs.select())}
        activations = connection.execute(schema.activations.select()).all()
    became = {status: builds[build_id].status for status, build_id in ids.items()}
    assert became == {status: status for status in ids} | {"building": "queued"}
    assert builds[ids["ready"]].environment == "sha256:e"
    assert builds[ids["failed"]].error == OLD_BUILDS["failed"][2]
    unfinished = {ids["queued"], ids["building"]}
    runs = {uuid7(4, number) for number in range(1, len(ids) + 1)}
    assert set(jobs) == set(requests) == {*unfinished, ids["ready"], *runs}
    made = jobs[ids["ready"]]
    assert (made.status, made.fence, made.event_seq) == ("succeeded", 1, 3)
    assert [line.split()[2] for line in made.history.splitlines()] == [
        "job.queued",
        "job.started",
        "job.succeeded",
    ]
    # A run that waits for a build that has ended is found by the next sweep.
    due = {requests[run].build_id for run in runs if jobs[run].not_before == 0}
    assert due == {ids[status] for status in ("ready", "failed", "cancelled")}
    for build_id in unfinished:
        build, job, request = builds[build_id], jobs[build_id], requests[build_id]
        assert build.job_id == build_id
        assert (job.status, job.eligible, job.history) == ("queued", 1, "1 10 job.queued {}\n")
        assert job.rank < 0
        assert json.loads(request.payload) == {
            "job_type": "build",
            "inputs": {"build_id": build_id, "config_version_id": build.version_id},
        }
    [activation] = activations
    assert activation.version_id == builds[ids["ready"]].version_id
    assert (activation.activated_by, activation.pending_version_id) == ("someone", None)


def _insert_job(connection: Any, job_id: str, **changes: Any) -> None:
    """Insert a job without its request, as a race of older versions could leave it."""
    job: dict[str, Any] = {"workspace_id": WORKSPACE, "id": job_id, "pool": "local", "rank": 10}
    job |= {"status": "queued", "eligible": 1, "holds_lane": 0, "fence": 0, "retries_left": 2}
    job |= {"event_seq": 1, "timeout_ms": 1, "history": "1 10 job.queued {}\n"}
    _insert(connection, "jobs", **job | changes)


def test_jobs_that_lost_their_request_can_be_seen_and_cancelled(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """Nothing is deleted, and the upgrade goes on."""
    left = _upgrade_up_to("0010_rows_that_belong_together", empty_url, monkeypatch)
    lone, on_lane, made = uuid7(4, 8), uuid7(4, 9), uuid7(4, 10)
    with SqlDatabase("", empty_url).connect() as connection:
        _insert(connection, "workspaces", id=WORKSPACE, slug="w", name="w", created_at=1)
        _insert_job(connection, lone)
        _insert_job(connection, on_lane, target_id="t", holds_lane=1)
        _insert_job(connection, made, rank=20 - (1 << 60), eligible=0)
    assert migrate.upgrade(empty_url) == left
    database = SqlDatabase(make_url(empty_url).get_backend_name(), empty_url)
    acts = Acts(Kernel(database.open(clock), KernelSettings(queue_size=0)), clock)
    jobs = {job.id: job for job in acts.everything()}
    assert {id_: (job.kind, job.submitted_at) for id_, job in jobs.items()} == {
        lone: ("lost", 10),
        on_lane: ("lost", 10),
        made: ("lost", 20),
    }
    acts.cancel(jobs[on_lane])
    assert acts.status(jobs[on_lane]) == "cancelled"
    database.close()


def test_builds_that_are_queued_forget_when_their_work_began(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _upgrade_up_to("0010_rows_that_belong_together", empty_url, monkeypatch)
    with SqlDatabase("", empty_url).connect() as connection:
        _insert(connection, "workspaces", id=WORKSPACE, slug="w", name="w", created_at=1)
        of_configuration = {"workspace_id": WORKSPACE, "created_at": 10}
        _insert(connection, "configurations", id=CONFIGURATION, name="c", **of_configuration)
        of_configuration |= {"configuration_id": CONFIGURATION}
        version = {"sequence": 1, "digest": "sha256:1", "manifest": "[]", "created_by": "someone"}
        _insert(connection, "config_versions", id=uuid7(2, 1), **version, **of_configuration)
        build: dict[str, Any] = {"fingerprint": "f", "status": "queued", "version_id": uuid7(2, 1)}
        build |= {"job_id": uuid7(3, 1), "started_at": 11}
        _insert(connection, "builds", id=uuid7(3, 1), **build, **of_configuration)
    assert migrate.upgrade(empty_url) == left
    with SqlDatabase("", empty_url).connect() as connection:
        [row] = connection.execute(schema.builds.select())
    assert (row.status, row.started_at, row.job_id) == ("queued", None, uuid7(3, 1))


def _upgrade(url: str, start: Any, answers: Any) -> None:
    start.wait()
    answers.put(migrate.upgrade(url))


def test_jobs_that_are_there_are_counted(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = _upgrade_up_to("0019_counts_of_jobs", empty_url, monkeypatch)
    workspace = uuid7(1, 1)
    job = {"pool": "local", "status": "queued", "eligible": 1, "rank": 1, "holds_lane": 0}
    job |= {"fence": 0, "retries_left": 2, "event_seq": 1, "timeout_ms": 1, "history": ""}
    request = {"kind": "echo", "priority": "low", "submitted_by": "someone", "submitted_at": 1}
    request |= {"limits": "{}", "payload": "{}"}
    with SqlDatabase("", empty_url).connect() as connection:
        _insert(connection, "workspaces", id=workspace, slug="w", name="w", created_at=1)
        for number in range(3):
            ids = {"workspace_id": workspace, "id": uuid7(2, number)}
            _insert(connection, "requests", **ids, **request)
            _insert(connection, "jobs", **ids, **job)
    assert migrate.upgrade(empty_url) == left
    with SqlDatabase("", empty_url).connect() as connection:
        assert connection.execute(schema.job_counts.select()).all() == [
            (workspace, "local", "echo", "low", "queued", 0, 3)
        ]


def test_two_processes_at_once_apply_each_revision_once(empty_url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, answers = spawn.Barrier(2), spawn.Queue()
    processes = [spawn.Process(target=_upgrade, args=(empty_url, start, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    applied = sorted(answers.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    assert applied == [[], REVISIONS]


def test_a_database_that_a_newer_version_changed_is_refused(database_url: str) -> None:
    with SqlDatabase("", database_url).connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    for look in (migrate.upgrade, migrate.pending):
        with pytest.raises(Unavailable, match=r"9999_later.*newer"):
            look(database_url)


def test_a_failing_revision_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables and the note that they were made commit together, also on SQLite."""

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr("alembic.runtime.migration.HeadMaintainer.update_to_step", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        migrate.upgrade(empty_url)
    monkeypatch.undo()
    assert migrate.current(empty_url) is None
    assert migrate.upgrade(empty_url) == REVISIONS


def test_no_downgrade_is_offered() -> None:
    assert not [name for name in dir(migrate) if "downgrade" in name]
    versions = Path(migrate.__file__).parent / "migrations" / "versions"
    for path in versions.glob("*.py"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.revision == path.stem
        assert not hasattr(module, "downgrade")


def test_the_migrations_are_in_t_sql() -> None:
    written = migrate.as_sql("mssql")
    batches = [batch.strip() for batch in written.split("\nGO") if batch.strip()]
    parsed = [part for batch in batches for part in sqlglot.parse(batch, dialect="tsql") if part]
    created = [part for part in parsed if isinstance(part, sqlglot.exp.Create)]
    # Alembic's own way to drop a default, which sqlglot does not parse, is the one exception.
    unknown = [part for part in parsed if isinstance(part, sqlglot.exp.Command)]
    assert ["'losses'" in str(part) for part in unknown] == [True]
    tables = {part.this.find(sqlglot.exp.Table).name for part in created if part.kind == "TABLE"}
    assert tables == {*schema.metadata.tables, "alembic_version"}
    indexes = {part.this.name for part in created if part.kind == "INDEX"}
    assert indexes == {
        index.name for table in schema.metadata.tables.values() for index in table.indexes
    }
    assert "WHERE status = 'running' AND target_id IS NOT NULL" in written
    assert "payload NVARCHAR(max) NOT NULL" in written
