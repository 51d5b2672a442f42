"""Impossible rows: the database refuses each by itself, and the in-memory store the same ones."""

import re
from typing import Any

import pytest
from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Table
from sqlalchemy.exc import DBAPIError, IntegrityError
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.model.invariants import JOB_INVARIANTS, ImpossibleRow, check_job
from tests.store.model.tables import Tables

from ade.domain.keys import work_id
from ade.store import schema
from ade.store.rows import JobRow, NewEvent


def id_(number: int) -> str:
    return f"0198c000-0000-7000-8000-{number:012d}"


CONFIGURATION, DOCUMENT, BUILD, VERSION = id_(1), id_(2), id_(3), id_(7)
QUEUED: dict[str, Any] = {
    "workspace_id": WORKSPACE,
    "id": id_(100),
    "kind": "echo",
    "pool": "local",
    "status": "queued",
    "eligible": 1,
    "priority": "normal",
    "rank": 0,
    "holds_lane": 0,
    "fence": 0,
    "retries_left": 2,
    "event_seq": 1,
    "submitted_by": "someone",
    "submitted_at": 0,
    "timeout_ms": 1000,
    "limits": "{}",
    "payload": "{}",
    "history": "",
}
LEASE = {"lease_owner": "w", "lease_expires_at": 1}
RUNNING = QUEUED | LEASE | {"status": "running", "eligible": 0, "fence": 1}
RUN = {
    "kind": "normalize",
    "configuration_id": CONFIGURATION,
    "document_id": DOCUMENT,
    "build_id": BUILD,
}
WAITING = QUEUED | {"eligible": 0}
PENDING = WAITING | {"status": "pending", "not_before": 1}
PAUSED = WAITING | {"status": "paused"}
OVER = [
    WAITING | {"status": status, "finished_at": 1}
    for status in ("succeeded", "failed", "timed_out", "cancelled")
]
EVALUATED = {"evaluation": "partial", "counts": "{}"}
POSSIBLE = [
    OVER[0] | EVALUATED,
    QUEUED,
    WAITING,
    RUNNING,
    PENDING,
    PAUSED,
    *OVER,
    QUEUED | RUN,
    RUNNING | {"stop_request": "cancel"},
    RUNNING | {"stop_request": "pause"},
    QUEUED | {"target_id": "t", "holds_lane": 1},
    WAITING | {"target_id": "t"},
    WAITING | {"target_id": "t", "holds_lane": 1},
    RUNNING | {"target_id": "t", "holds_lane": 1},
]

LEASED_ANYWAY = [row | LEASE for row in (QUEUED, PENDING, PAUSED, *OVER)]
HALF_LEASED = [RUNNING | {"lease_owner": None}, RUNNING | {"lease_expires_at": None}]
IMPOSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("jobs_shape", QUEUED | {"status": "done"}),
    ("jobs_shape", QUEUED | {"status": ""}),
    *[("jobs_shape", row | {"finished_at": 1}) for row in (QUEUED, RUNNING, PENDING, PAUSED)],
    *[("jobs_shape", row | {"finished_at": None}) for row in OVER],
    *[("jobs_shape", row) for row in LEASED_ANYWAY],
    *[("jobs_shape", row | {"lease_owner": "w"}) for row in (QUEUED, PENDING, PAUSED, *OVER)],
    *[("jobs_shape", row | {"lease_expires_at": 1}) for row in (QUEUED, PENDING, PAUSED, *OVER)],
    *[("jobs_shape", row) for row in HALF_LEASED],
    ("jobs_shape", RUNNING | {"lease_owner": None, "lease_expires_at": None}),
    ("jobs_shape", RUNNING | {"fence": 0}),
    *[("jobs_shape", row | {"stop_request": "cancel"}) for row in (QUEUED, PENDING, PAUSED, *OVER)],
    ("jobs_shape", PENDING | {"not_before": None}),
    *[("jobs_shape", row | {"eligible": 1}) for row in (RUNNING, PENDING, PAUSED, *OVER)],
    ("jobs_shape", QUEUED | {"eligible": 2}),
    ("requests_priority", QUEUED | {"priority": "urgent"}),
    ("jobs_stop_request", RUNNING | {"stop_request": "kill"}),
    ("jobs_lane_has_target", QUEUED | {"holds_lane": 1}),
    ("jobs_lane_has_target", QUEUED | {"holds_lane": 2, "target_id": "t", "eligible": 0}),
    ("jobs_head_holds_lane", QUEUED | {"target_id": "t"}),
    ("jobs_head_holds_lane", RUNNING | {"target_id": "t"}),
    *[("requests_run_is_complete", QUEUED | RUN | {column: None}) for column in list(RUN)[1:]],
    ("jobs_counts", QUEUED | {"fence": -1}),
    ("jobs_counts", QUEUED | {"retries_left": -1}),
    ("jobs_counts", QUEUED | {"event_seq": -1}),
    ("jobs_evaluation", OVER[0] | EVALUATED | {"evaluation": "good"}),
    ("jobs_evaluation", OVER[0] | EVALUATED | {"counts": None}),
    *[("jobs_evaluation", row | EVALUATED) for row in (QUEUED, RUNNING, PENDING, PAUSED)],
]
ORPHANS: list[tuple[str, dict[str, Any]]] = [
    ("workspace_id", QUEUED | {"workspace_id": id_(999)}),
    ("workspace_id_document_id", QUEUED | {"document_id": id_(999)}),
    ("workspace_id_configuration_id", QUEUED | {"configuration_id": id_(999)}),
    ("workspace_id_build_id", QUEUED | {"build_id": id_(999)}),
]
NEEDED = sorted(
    {c.name for table in (schema.requests, schema.jobs) for c in table.c if not c.nullable}
)


def as_row(values: dict[str, Any]) -> JobRow:
    return JobRow._make(values.get(name) for name in JobRow._fields)


def insert_job(database: SqlDatabase, values: dict[str, Any]) -> None:
    """Insert what is asked, then where it is."""
    for table in (schema.requests, schema.jobs):
        database.insert(table.name, **{name: values[name] for name in values if name in table.c})


@pytest.fixture
def tables(sql_database: SqlDatabase) -> SqlDatabase:
    """Give tables with the parents of runs in them."""
    common = {"workspace_id": WORKSPACE, "created_at": 0}
    sql_database.insert("configurations", id=CONFIGURATION, name="c", **common)
    sql_database.insert("documents", id=DOCUMENT, name="d", digest="d", size_bytes=1, **common)
    sql_database.insert("config_versions", id=VERSION, created_by="someone", **common | VERSION_ROW)
    sql_database.insert("builds", id=BUILD, **_build())
    return sql_database


VERSION_ROW = {
    "configuration_id": CONFIGURATION,
    "sequence": 1,
    "digest": "sha256:v",
    "manifest": "[]",
}


def _build(**changes: Any) -> dict[str, Any]:
    return {
        "workspace_id": WORKSPACE,
        "configuration_id": CONFIGURATION,
        "fingerprint": "sha256:f",
        "status": "queued",
        "version_id": VERSION,
        "job_id": id_(100),
        "created_at": 0,
    } | changes


def _name(case: Any) -> str:
    return case if isinstance(case, str) else ""


@pytest.mark.parametrize("values", POSSIBLE)
def test_possible_rows_are_taken(tables: SqlDatabase, values: dict[str, Any]) -> None:
    insert_job(tables, values)
    check_job(as_row(values))


@pytest.mark.parametrize(("name", "values"), IMPOSSIBLE, ids=_name)
def test_the_database_refuses_an_impossible_job(
    tables: SqlDatabase, name: str, values: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match=f"ck_{name}"):
        insert_job(tables, values)


@pytest.mark.parametrize(("name", "values"), IMPOSSIBLE, ids=_name)
def test_the_memory_store_refuses_the_same(name: str, values: dict[str, Any]) -> None:
    with pytest.raises(ImpossibleRow, match=f"^ck_{name}$"):
        check_job(as_row(values))


def test_no_constraint_is_left_out() -> None:
    constraints = schema.requests.constraints | schema.jobs.constraints
    checks = {c.name for c in constraints if isinstance(c, CheckConstraint)}
    # The memory store notes elsewhere which jobs are set aside, and keeps both halves as one.
    by_row = checks - {"ck_jobs_set_aside"}
    assert by_row == set(JOB_INVARIANTS) == {f"ck_{name}" for name, _ in IMPOSSIBLE}
    foreign = {c.name for c in constraints if isinstance(c, ForeignKeyConstraint)}
    assert foreign - {"fk_jobs_workspace_id_id"} == {f"fk_requests_{name}" for name, _ in ORPHANS}


def _half(values: dict[str, Any], table: Table) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in table.c}


FOREIGN_KEY = re.compile("foreign key", re.IGNORECASE)


def test_a_job_cannot_be_without_its_request(tables: SqlDatabase) -> None:
    with pytest.raises(IntegrityError, match=FOREIGN_KEY):
        tables.insert("jobs", **_half(QUEUED, schema.jobs))


def test_a_request_cannot_be_deleted_before_its_job(tables: SqlDatabase) -> None:
    insert_job(tables, QUEUED)
    with pytest.raises(IntegrityError, match=FOREIGN_KEY), tables.connect() as connection:
        connection.execute(schema.requests.delete())
    with tables.connect() as connection:
        connection.execute(schema.jobs.delete())
        connection.execute(schema.requests.delete())


@pytest.mark.parametrize(
    "parent", [schema.documents, schema.builds, schema.workspaces, schema.requests]
)
def test_a_parent_of_a_job_cannot_be_deleted(tables: SqlDatabase, parent: Table) -> None:
    insert_job(tables, QUEUED | RUN)
    with pytest.raises(IntegrityError, match=FOREIGN_KEY), tables.connect() as connection:
        connection.execute(parent.delete())


@pytest.mark.parametrize(
    "table", [schema.documents, schema.builds, schema.configurations, schema.requests, schema.jobs]
)
def test_the_key_of_a_job_or_its_parent_cannot_be_changed(
    tables: SqlDatabase, table: Table
) -> None:
    insert_job(tables, QUEUED | RUN)
    with pytest.raises(IntegrityError, match=FOREIGN_KEY), tables.connect() as connection:
        connection.execute(table.update().values(id=id_(999)))


@pytest.mark.parametrize("wrong", [QUEUED, RUNNING, PENDING, PAUSED, *OVER])
def test_only_a_job_that_waits_for_nothing_else_is_set_aside(
    tables: SqlDatabase, wrong: dict[str, Any]
) -> None:
    insert_job(tables, WAITING | {"id": id_(101), "needs_kind": "echo"})
    with pytest.raises(IntegrityError, match="ck_jobs_set_aside"):
        insert_job(tables, wrong | {"needs_kind": "echo"})


@pytest.mark.parametrize(("name", "values"), ORPHANS, ids=_name)
def test_a_job_needs_its_parents(tables: SqlDatabase, name: str, values: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=re.compile("foreign key", re.IGNORECASE)):
        insert_job(tables, values)
    with pytest.raises(ImpossibleRow, match=f"^fk_requests_{name}$"):
        Tables(workspaces={WORKSPACE}).put_job(as_row(values))


def test_one_orphan_among_many_refuses_them_all(tables: SqlDatabase) -> None:
    asked = {name: value for name, value in QUEUED.items() if name in schema.requests.c} | RUN
    rows = [asked | {"id": id_(number)} for number in range(100, 105)]
    insert = schema.requests.insert()
    with (
        pytest.raises(IntegrityError, match=re.compile("foreign key", re.IGNORECASE)),
        tables.connect() as connection,
    ):
        connection.execute(insert.values([*rows, asked | {"id": id_(105), "build_id": id_(999)}]))
    with tables.connect() as connection:
        assert connection.execute(schema.requests.select()).all() == []
        connection.execute(insert.values(rows))


@pytest.mark.parametrize("column", NEEDED)
def test_what_a_job_needs(tables: SqlDatabase, column: str) -> None:
    with pytest.raises(DBAPIError, match=re.compile("null", re.IGNORECASE)):
        insert_job(tables, QUEUED | {column: None})


def test_two_running_jobs_on_one_target(tables: SqlDatabase) -> None:
    head = RUNNING | {"target_id": "t", "holds_lane": 1}
    second = head | {"id": id_(101)}
    beside = head | {"id": id_(102), "target_id": "u"}
    fake = Tables(workspaces={WORKSPACE})
    for values in (head, beside):
        insert_job(tables, values)
        fake.put_job(as_row(values))
    with pytest.raises(IntegrityError, match=r"ux_jobs_live_target|jobs\.target_id"):
        insert_job(tables, second)
    with pytest.raises(ImpossibleRow, match="ux_jobs_live_target"):
        fake.put_job(as_row(second))


def test_one_job_stands_for_a_piece_of_work(tables: SqlDatabase) -> None:
    work = work_id(WORKSPACE, "k")
    tables.insert("executions", job_id=id_(100), work_id=work)
    with pytest.raises(IntegrityError):
        tables.insert("executions", job_id=id_(101), work_id=work)


def test_one_event_in_each_place_from_one_up(tables: SqlDatabase) -> None:
    event = NewEvent(WORKSPACE, id_(100), 1, 0, "job.queued", "{}")
    fake = Tables()
    tables.insert("events", **event._asdict())
    fake.add_event(event)
    for wrong, name in ((event, "pk_events"), (event._replace(seq=0), "ck_events_seq")):
        with pytest.raises(IntegrityError):
            tables.insert("events", **wrong._asdict())
        with pytest.raises(ImpossibleRow, match=name):
            fake.add_event(wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "done"},
        {"status": "building"},  # what is under way is for its job to say
        {"job_id": None},
        {"version_id": None},
        {"started_at": 1},
        {"finished_at": 1},
        {"error": "{}"},
        {"environment": "sha256:e"},
        {"status": "ready"},
        {"status": "ready", "finished_at": 1, "error": "{}"},
        {"status": "failed", "error": "{}"},
        {"status": "failed", "finished_at": 1},
        {"status": "failed", "finished_at": 1, "error": "{}", "environment": "sha256:e"},
        {"status": "cancelled"},
        {"status": "cancelled", "finished_at": 1, "environment": "sha256:e"},
    ],
)
def test_impossible_builds(tables: SqlDatabase, changes: dict[str, Any]) -> None:
    another = {"fingerprint": "sha256:g", "job_id": id_(101)}
    with pytest.raises(IntegrityError, match="ck_builds_shape"):
        tables.insert("builds", id=id_(4), **_build(**another | changes))


def test_one_build_of_a_fingerprint(tables: SqlDatabase) -> None:
    with pytest.raises(IntegrityError):
        tables.insert("builds", id=id_(4), **_build(job_id=id_(101)))


def test_a_job_makes_one_build(tables: SqlDatabase) -> None:
    with pytest.raises(IntegrityError):
        tables.insert("builds", id=id_(4), **_build(fingerprint="sha256:g"))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("active_version", {"version_id": VERSION}),
        ("active_version", {"version_id": VERSION, "activated_at": 1}),
        ("active_version", {"activated_at": 1, "activated_by": "someone"}),
        ("pending_version", {"pending_version_id": VERSION}),
        ("pending_version", {"pending_by": "someone"}),
    ],
)
def test_impossible_activations(tables: SqlDatabase, name: str, changes: dict[str, Any]) -> None:
    named = {"workspace_id": WORKSPACE, "configuration_id": CONFIGURATION}
    with pytest.raises(IntegrityError, match=f"ck_activations_{name}"):
        tables.insert("activations", **named, **changes)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("users", {"id": id_(5), "name": "u", "operator": 2, "created_at": 0}),
        ("workspaces", {"id": id_(5), "slug": "default", "name": "again", "created_at": 0}),
        ("members", {"workspace_id": WORKSPACE, "user_id": id_(999), "role": "viewer"}),
        ("documents", {"workspace_id": WORKSPACE, "id": id_(6), "name": "", "size_bytes": -1}),
    ],
)
def test_impossible_rows_of_other_tables(
    tables: SqlDatabase, table: str, values: dict[str, Any]
) -> None:
    more: dict[str, Any] = {"digest": "d"} if table == "documents" else {}
    with pytest.raises(IntegrityError):
        tables.insert(table, **{"created_at": 0} | more | values)


def _key(tables: SqlDatabase) -> dict[str, Any]:
    """Insert a key, and return what names it."""
    tables.insert("users", id=id_(5), name="u", operator=0, created_at=0)
    tables.insert("api_keys", id=id_(6), digest="d", user_id=id_(5), label="", created_at=0)
    return {"key_id": id_(6), "digest": "sha256:d", "created_at": 10}


SEEN = {"client": "", "last_seen_at": 10, "expires_at": 11}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("digest", {"digest": "the token itself"}),
        ("last_seen_at", {"last_seen_at": 9}),
        ("expires_at", {"expires_at": 10}),
    ],
)
def test_impossible_sessions(tables: SqlDatabase, name: str, changes: dict[str, Any]) -> None:
    session = {"user_id": id_(5), **_key(tables), **SEEN}
    tables.insert("sessions", id=id_(7), **session)
    with pytest.raises(IntegrityError, match=f"ck_sessions_{name}"):
        tables.insert("sessions", id=id_(8), **session | {"digest": "sha256:e"} | changes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [("digest", {"digest": "the token itself"}), ("expires_at", {"expires_at": 10})],
)
def test_impossible_links(tables: SqlDatabase, name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=f"ck_login_links_{name}"):
        tables.insert("login_links", id=id_(7), **_key(tables) | {"expires_at": 11} | changes)


def test_a_deleted_key_takes_its_sessions_along(tables: SqlDatabase) -> None:
    named = _key(tables)
    tables.insert("sessions", id=id_(7), user_id=id_(5), **named, **SEEN)
    tables.insert("login_links", id=id_(8), **named, expires_at=11)
    with tables.connect() as connection:
        connection.execute(schema.api_keys.delete())
        for table in (schema.sessions, schema.login_links):
            assert connection.execute(table.select()).all() == []


AGENT = {"name": "gpu-1", "labels": "[]", "key_digest": "sha256:k", "created_at": 10}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("revoked", {"key_digest": None}),
        ("revoked", {"revoked_at": 11}),
        (
            "revoked",
            {
                "key_digest": None,
                "revoked_at": 11,
                "code_digest": "sha256:c",
                "code_expires_at": 12,
            },
        ),
        (
            "revoked",
            {
                "key_digest": None,
                "revoked_at": 11,
                "old_key_digest": "sha256:o",
                "old_key_expires_at": 12,
            },
        ),
        ("old_key", {"old_key_digest": "sha256:o"}),
        ("old_key", {"old_key_expires_at": 11}),
        ("code", {"code_digest": "sha256:c"}),
        ("code", {"code_expires_at": 11}),
        ("digests", {"key_digest": "the key itself"}),
        ("digests", {"old_key_digest": "the key itself", "old_key_expires_at": 11}),
        ("digests", {"code_digest": "the code itself", "code_expires_at": 11}),
    ],
)
def test_impossible_agents(tables: SqlDatabase, name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=f"ck_agents_{name}"):
        tables.insert("agents", id=id_(7), **AGENT | changes)


def test_two_agents_have_neither_a_name_nor_a_key_in_common(tables: SqlDatabase) -> None:
    tables.insert("agents", id=id_(7), **AGENT)
    for changes in ({"name": "gpu-2"}, {"key_digest": "sha256:another"}):
        with pytest.raises(IntegrityError):
            tables.insert("agents", id=id_(8), **AGENT | changes)


@pytest.mark.parametrize("role", ["owner", ""])
def test_roles_are_three(tables: SqlDatabase, role: str) -> None:
    tables.insert("users", id=id_(5), name="u", operator=0, created_at=0)
    with pytest.raises(IntegrityError, match="ck_members_role"):
        tables.insert("members", workspace_id=WORKSPACE, user_id=id_(5), role=role, created_at=0)
