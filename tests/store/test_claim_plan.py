"""The plans of the hot statements: a walk along the intended index, at any length of the queue.

Each statement is planned as the kernel runs it (on PostgreSQL: prepared, generic, with the queue's
settings) over a thousand jobs and over a hundred thousand. A scan of the table or a sort would
make a claim as slow as the queue is long.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from tests.databases import WORKSPACE, fresh_postgres, fresh_sqlite, libpq
from tests.store.compiling import DIALECTS, sql_of

from ade.store.compile import Compiler
from ade.store.dialects.postgres import QUEUE_SETTINGS
from ade.store.rows import FinishRow
from ade.store.sql import STATEMENTS

FEW, MANY = 1_000, 100_000

_ID = {
    "sqlite": "printf('0198a000-0000-7000-8000-%012d', n)",
    "postgresql": "('0198a000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid",
}
_WORKSPACE = {"sqlite": f"'{WORKSPACE}'", "postgresql": f"'{WORKSPACE}'::uuid"}
_NUMBERS = {
    "sqlite": (
        "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})"
        " SELECT n FROM c) AS numbers"
    ),
    "postgresql": "generate_series(1, {count}) AS numbers(n)",
}


def _fill(dialect: str, execute: Any, count: int) -> None:
    """Insert jobs: a tenth each waits, runs, waits behind a lane, holds one; the rest has ended."""
    workspace, id_ = _WORKSPACE[dialect], _ID[dialect]
    waits, runs, behind, holds = (f"n % 10 = {digit}" for digit in range(4))
    live = f"{waits} OR {runs} OR {behind}"
    values = {
        "requests": {
            "workspace_id": workspace,
            "id": id_,
            "kind": "'echo'",
            "priority": "'normal'",
            "submitted_by": "'someone'",
            "submitted_at": "n",
            "limits": "'{}'",
            "payload": "'{}'",
        },
        "jobs": {
            "workspace_id": workspace,
            "id": id_,
            "pool": "'local'",
            "status": (
                f"CASE WHEN {runs} THEN 'running' WHEN {live} THEN 'queued' ELSE 'failed' END"
            ),
            "eligible": f"CASE WHEN {waits} THEN 1 ELSE 0 END",
            "rank": "n",
            "target_id": f"CASE WHEN {behind} OR {holds} THEN 't' || (n / 10) END",
            "holds_lane": f"CASE WHEN {holds} THEN 1 ELSE 0 END",
            "fence": "1",
            "retries_left": "2",
            "lease_owner": f"CASE WHEN {runs} THEN 'w' END",
            "lease_expires_at": f"CASE WHEN {runs} THEN n END",
            "event_seq": "1",
            "finished_at": f"CASE WHEN NOT ({live}) THEN n END",
            "timeout_ms": "1000",
            "history": "''",
        },
        "executions": {"work_id": id_, "job_id": id_},
    }
    numbers = _NUMBERS[dialect].format(count=count)
    for table, columns in values.items():
        names, sources = ", ".join(columns), ", ".join(columns.values())
        execute(f"INSERT INTO {table} ({names}) SELECT {sources} FROM {numbers}")
    execute("ANALYZE")


class Sqlite:
    """Plan on SQLite."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(str(make_url(url).database))

    def fill(self, count: int) -> None:
        """Insert jobs."""
        _fill("sqlite", self._connection.execute, count)
        self._connection.commit()

    def plan(self, sql: str) -> list[str]:
        """Return the steps of a plan."""
        found = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))
        return [str(row[3]) for row in found]

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class Postgres:
    """Plan on PostgreSQL, with what the kernel sets."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(libpq(url), autocommit=True)
        for setting, value in QUEUE_SETTINGS.items():
            self._connection.execute(f"SET {setting} = {value}".encode())

    def fill(self, count: int) -> None:
        """Insert jobs."""
        _fill("postgresql", lambda sql: self._connection.execute(sql.encode()), count)

    def plan(self, sql: str) -> list[str]:
        """Return the steps of a generic plan."""
        count = sql.count("%s")
        for number in range(1, count + 1):
            sql = sql.replace("%s", f"${number}", 1)
        self._connection.execute(f"PREPARE planned AS {sql}".encode())
        nothing = f"({', '.join(['NULL'] * count)})" if count else ""
        explain = f"EXPLAIN (COSTS OFF) EXECUTE planned{nothing}"
        steps = [str(row[0]) for row in self._connection.execute(explain.encode())]
        self._connection.execute("DEALLOCATE planned")
        return steps

    def close(self) -> None:
        """Let go of the server."""
        self._connection.close()


# Which indexes of jobs and their requests each statement walks along, and no other way.
KEYS = {"sqlite": "sqlite_autoindex_jobs_1", "postgresql": "pk_jobs"}
REQUESTS = {"sqlite": "sqlite_autoindex_requests_1", "postgresql": "pk_requests"}
SHORT = "queue_pauses"  # a table of a few rows, which may be scanned
WALKS: dict[str, set[str]] = {
    "next_workspaces": {"ix_jobs_eligible"},
    "others_wait": {"ix_jobs_eligible"},
    "renew": {"key"},
    "move": {"key"},
    "append": {"key"},
    "append_events": {"key"},
    "request_stop": {"key"},
    "clear_lane": {"key"},
    "read_histories": {"key"},
    "lock_jobs": {"key", "request"},
    "lock_free_jobs": {"key", "request"},
    "count_waiting": {"ix_jobs_eligible", "ix_jobs_held"},
    "count_waiting_in": {"ix_jobs_eligible", "ix_jobs_held_in"},
    "kinds_set_aside": {"ix_jobs_set_aside"},
    "recall": {"ix_jobs_set_aside", "key"},
    "set_aside": {"ix_jobs_eligible", "request", "key"},
    "held_lanes": {"ix_jobs_lane_holder"},
    "promote_lanes": {"ix_jobs_lane", "ix_jobs_lane_holder", "key"},
    "due_jobs": {"ix_jobs_held", "request"},
    "expired_jobs": {"ix_jobs_lease", "request"},
    "overdue_jobs": {"ix_jobs_lease", "request"},
}
OWN_WALKS = {
    "sqlite": {
        "pick": {"ix_jobs_eligible", "request"},
        "take": set(),  # by the address
        "end_at_address": set(),
        "end": {"key"},
    },
    "postgresql": {
        "claim": {"ix_jobs_eligible", "request"},
        "claim_of_kinds": {"ix_jobs_eligible", "request"},
        "end_returning": {"key"},
    },
}
# How PostgreSQL finds the newest event of a job; SQLite names no index for it.
EVENTS = "pk_events"
INDEX = re.compile(r"(?:using|USING)(?: COVERING)?(?: INDEX)? ((?:ix|pk|sqlite_autoindex)_\w+)")
SLOW = re.compile(
    r"Seq Scan|\bSort\b|Hash|Materialize|Bitmap"
    r"|SCAN (?:jobs|requests|events|job|waiting|holder)$|TEMP B-TREE"
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def planners(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, Any]]:
    """Give a database with few jobs and one with many."""
    opened: list[Any] = []
    with ExitStack() as stack:
        for count in (FEW, MANY):
            if request.param == "sqlite":
                template = request.getfixturevalue("sqlite_template")
                opened.append(Sqlite(stack.enter_context(fresh_sqlite(template))))
            else:
                server = request.getfixturevalue("postgres_server")
                opened.append(Postgres(stack.enter_context(fresh_postgres(server))))
            stack.callback(opened[-1].close)
            opened[-1].fill(count)
        yield (request.param, *opened)


def test_every_hot_statement_walks_along_its_index(planners: tuple[str, Any, Any]) -> None:
    dialect, few, many = planners
    sql = sql_of(dialect)
    names = {KEYS[dialect]: "key", REQUESTS[dialect]: "request"}
    for statement, indexes in (WALKS | OWN_WALKS[dialect]).items():
        plan = many.plan(sql[statement])
        explained = "\n".join([statement, *plan])
        assert plan == few.plan(sql[statement]), explained
        used = {name for step in plan for name in INDEX.findall(step)} - {EVENTS}
        assert {names.get(name, name) for name in used} == indexes, explained
        slow = [step for step in plan if SLOW.search(step) and SHORT not in step]
        assert not slow, explained
        for step, condition in zip(plan, [*plan[1:], ""], strict=True):
            if "Index" in step and "using pk_" in step:
                assert "Index Cond" in condition, explained


ENDS: dict[str, tuple[str, set[str]]] = {
    "sqlite": ("end_at_address", set()),
    "postgresql": ("end_returning", {"pk_jobs"}),
}


def test_ends_of_many_are_looked_up_each_by_itself(planners: tuple[str, Any, Any]) -> None:
    dialect, few, many = planners
    name, indexes = ENDS[dialect]
    compiler = Compiler(DIALECTS[dialect])
    for equal in (frozenset[str](), frozenset(FinishRow._fields) - STATEMENTS[name].differs):
        sql = compiler.insert(name, equal).sql
        plan = many.plan(sql)
        explained = "\n".join([name, *plan])
        assert plan == few.plan(sql), explained
        used = {index for step in plan for index in INDEX.findall(step)} - {EVENTS}
        assert used == indexes, explained
        assert not [step for step in plan if SLOW.search(step)], explained


def test_no_statement_that_claims_or_ends_is_left_out() -> None:
    for dialect, own in OWN_WALKS.items():
        run = {n for n in sql_of(dialect) if re.search(r"claim|pick|take|end|renew|move", n)}
        here = DIALECTS[dialect].chains_changes
        other = {"pick", "take", "end", "end_at_address"} if here else {"end_returning"}
        assert run - other <= {*WALKS, *own}, run
