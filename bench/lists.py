"""The cost of lists, counts and metrics over a thousand jobs and over a million.

Every filter that the API offers, on SQLite and PostgreSQL, through the session that servers use.
The goal: at a million jobs, at most twice the cost at a thousand. `scripts/bench lists --help`
lists the options. A full run takes some minutes and about 2 GB in memory or on the disk.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from ade.domain.ids import uuid7
from ade.store import migrate
from ade.store.session import Session
from bench import postgres, sqlite

FEW, MANY = 1_000, 1_000_000
RATIO_MAX = 2.0
FLOOR_MS = 0.3  # a difference below this is noise
WORKSPACE = "0198a000-0000-7000-8000-000000000001"
CONFIGURATION, DOCUMENT, BUILD = (f"0198a000-0000-7000-8000-00000000000{n}" for n in (2, 3, 4))
BEGAN_US = 1_760_000_000_000_000
SPACING_US = 1_000_000  # between two submissions
PAGE = 50
READS = 40
# Of these, there are as many whatever the number of jobs is; they are the oldest.
RARE = 20

_NUMBERS = {
    "sqlite": (
        "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})"
        " SELECT n FROM c) AS numbers"
    ),
    "postgres": "generate_series(1, {count}) AS numbers(n)",
}
_MS = f"({BEGAN_US} / 1000 + n * {SPACING_US // 1000})"
_HEX = {"sqlite": f"printf('%012x', {_MS})", "postgres": f"lpad(to_hex({_MS}::bigint), 12, '0')"}
_ID = "substr({hex}, 1, 8) || '-' || substr({hex}, 9, 4) || '-7000-8000-000000000000'"


def main() -> None:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 120)
    figures = {}
    for name in options.databases:
        with ExitStack() as stack:
            make = stack.enter_context(fresh(name))
            sessions = [
                filled(name, stack.enter_context(make()), count, stack)
                for count in (FEW, options.many)
            ]
            looks = [reads(count) for count in (FEW, options.many)]
            figures[name] = {
                read: timed([(s, of[read]) for s, of in zip(sessions, looks, strict=True)])
                for read in looks[0]
            }
        console.print(table(name, figures[name], options.many))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def parse() -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="scripts/bench lists", description=summary)
    add = parser.add_argument
    add("--many", type=int, default=MANY, help="how many jobs are many (1000000)")
    add("--databases", nargs="+", choices=list(_NUMBERS), default=list(_NUMBERS))
    add("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser.parse_args()


@contextmanager
def fresh(name: str) -> Iterator[Callable[[], Any]]:
    """Yield what makes empty databases."""
    if name == "sqlite":
        yield sqlite.fresh_file
        return
    with postgres.running_server() as server:
        yield server.fresh_database


def filled(name: str, place: str, count: int, stack: ExitStack) -> Session:
    """Fill a database with jobs, and open a session on it."""
    url = f"sqlite:///{place}" if name == "sqlite" else place
    migrate.upgrade(url)
    fill(name, url, count)
    session = Session(url)
    stack.callback(session.close)
    session.change(lambda tx: tx.job_counts.recount())
    return session


def timed(turns: list[tuple[Session, Callable[[Any], Any]]]) -> list[float]:
    """Return the median times of reads in milliseconds; they take turns, so noise hits all."""
    times: list[list[float]] = [[] for _ in turns]
    for _ in range(READS):
        for (session, look), of in zip(turns, times, strict=True):
            began = time.perf_counter()
            session.read(look)
            of.append(time.perf_counter() - began)
    return [statistics.median(of[READS // 4 :]) * 1000 for of in times]


def reads(count: int) -> dict[str, Callable[[Any], Any]]:
    """List what is measured: each filter as a list and as counts, and the metric."""
    newest = BEGAN_US + count * SPACING_US
    filters: dict[str, dict[str, Any]] = {
        "none": {},
        "status, many": {"status": "succeeded"},
        "status, few": {"status": "failed"},
        "two statuses": {"status": ("failed", "timed_out")},
        "job_type, many": {"kind": "echo"},
        "job_type, few": {"kind": "rare"},
        "job_type and status": {"kind": "rare", "status": "succeeded"},
        "job_type and status, none": {"kind": "rare", "status": "failed"},
        "priority, few": {"priority": "low"},
        "target_id": {"target_id": "target-3"},
        "evaluation, few": {"kind": "normalize", "evaluation": "partial"},
        "configuration_id": {"kind": "normalize", "configuration_id": CONFIGURATION},
        "document_id and status": {"document_id": DOCUMENT, "status": ("failed", "succeeded")},
        "submitted_after": {"submitted_after": newest - 20 * SPACING_US},
        "submitted_before": {"submitted_before": BEGAN_US + 20 * SPACING_US},
    }
    found: dict[str, Callable[[Any], Any]] = {}
    for name, wanted in filters.items():
        found[f"list: {name}"] = lambda r, w=wanted: r.list_jobs(WORKSPACE, w, None, PAGE)
        found[f"counts: {name}"] = lambda r, w=wanted: r.count_jobs(WORKSPACE, w)
    middle = uuid7(BEGAN_US + count // 2 * SPACING_US, 0)
    found["list: a page in the middle"] = lambda r: r.list_jobs(WORKSPACE, {}, middle, PAGE)
    found["metrics"] = lambda r: r.count_by_status()
    return found


def fill(name: str, url: str, count: int) -> None:
    """Insert jobs that have ended: most are echoes, 20 of them are in any other way special."""
    id_ = _ID.format(hex=_HEX[name])
    id_ = id_ if name == "sqlite" else f"({id_})::uuid"
    value = (lambda text: f"'{text}'") if name == "sqlite" else (lambda text: f"'{text}'::uuid")
    workspace, none = value(WORKSPACE), "NULL" if name == "sqlite" else "NULL::uuid"
    n = "n" if name == "sqlite" else "n::bigint"
    at = f"{BEGAN_US} + {n} * {SPACING_US}"
    run, rare, failed, low = (f"n > {RARE * k} AND n <= {RARE * (k + 1)}" for k in range(1, 5))
    values = {
        "requests": {
            "workspace_id": workspace,
            "id": id_,
            "kind": f"CASE WHEN {run} THEN 'normalize' WHEN {rare} THEN 'rare' ELSE 'echo' END",
            "priority": f"CASE WHEN {low} THEN 'low' ELSE 'normal' END",
            **{
                column: f"CASE WHEN {run} THEN {value(id_of)} ELSE {none} END"
                for column, id_of in (
                    ("configuration_id", CONFIGURATION),
                    ("document_id", DOCUMENT),
                    ("build_id", BUILD),
                )
            },
            "submitted_by": "'someone'",
            "submitted_at": at,
            "limits": "'{}'",
            "payload": "'{}'",
        },
        "jobs": {
            "workspace_id": workspace,
            "id": id_,
            "pool": "'local'",
            "status": f"CASE WHEN {failed} THEN 'failed' ELSE 'succeeded' END",
            "eligible": "0",
            "rank": at,
            "target_id": "CASE WHEN n <= 200 THEN 'target-' || (n % 10) END",
            "holds_lane": "0",
            "fence": "1",
            "retries_left": "0",
            "event_seq": "3",
            "started_at": at,
            "finished_at": at,
            "timeout_ms": "60000",
            "history": "''",
            "evaluation": f"CASE WHEN {run} THEN 'partial' END",
            "counts": f"CASE WHEN {run} THEN '{{}}' END",
        },
    }
    statements = [
        *parents(),
        *(insert(name, table_, columns, count) for table_, columns in values.items()),
    ]
    if name == "sqlite":
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as server:
        for statement in statements:
            server.execute(statement.encode())
        server.execute("VACUUM ANALYZE")


def parents() -> list[str]:
    """Insert what the rows name."""
    ws, conf, doc, build = (f"'{id_}'" for id_ in (WORKSPACE, CONFIGURATION, DOCUMENT, BUILD))
    return [
        f"INSERT INTO workspaces VALUES ({ws}, 'default', 'Default', 0)",
        f"INSERT INTO configurations VALUES ({ws}, {conf}, 'c', 0, NULL)",
        "INSERT INTO documents (workspace_id, id, name, digest, size_bytes, created_at)"
        f" VALUES ({ws}, {doc}, 'd', 'sha256:d', 1, 0)",
        "INSERT INTO builds (workspace_id, id, configuration_id, fingerprint, status, created_at,"
        f" finished_at) VALUES ({ws}, {build}, {conf}, 'f', 'ready', 0, 0)",
    ]


def insert(name: str, table_: str, columns: dict[str, str], count: int) -> str:
    """Insert a row for each number."""
    numbers = _NUMBERS[name].format(count=count)
    return (
        f"INSERT INTO {table_} ({', '.join(columns)})"
        f" SELECT {', '.join(columns.values())} FROM {numbers}"
    )


def table(name: str, figures: dict[str, list[float]], many: int) -> Table:
    """Show the figures of a database."""
    shown = Table(title=f"{name}, p50 in ms")
    for column in ("read", f"{FEW:,} jobs", f"{many:,} jobs", "ratio", ""):
        shown.add_column(column, justify="left" if column == "read" else "right")
    for read, (few, lots) in figures.items():
        is_right = lots <= few * RATIO_MAX or lots - few < FLOOR_MS
        shown.add_row(
            read, f"{few:.2f}", f"{lots:.2f}", f"{lots / few:.2f}", "" if is_right else "over"
        )
    return shown


if __name__ == "__main__":
    main()
