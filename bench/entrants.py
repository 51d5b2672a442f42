"""The queues that are compared, and the order in which the heats are run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from rich.console import Console

from bench import serving
from bench.cases import Case, Contestant, Database, Sample, Sizes, Unavailable
from bench.child import Run, load, run_in_child
from bench.contest import Heat
from bench.serving import HTTP_CASES, HttpCase, HttpContestant

ARENAS: dict[Database, str] = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
HTTP = "HTTP"
RAW = "raw loop"
ALONE = "FastAPI alone"
ADE = "ADE"
# The first of an arena is the limit that the others are set against. Modules that do not exist
# (a checkout without ADE's own contestants) are passed over.
QUEUES = [
    "bench.raw.postgres:RawPostgres",
    "bench.raw.sqlite:RawSqlite",
    "bench.ade_queue:AdePostgres",
    "bench.ade_queue:AdeSqlite",
    "bench.peers.pgqueuer:PgQueuer",
    "bench.peers.procrastinate:Procrastinate",
    "bench.peers.graphile:Graphile",
    "bench.peers.huey:Huey",
]
SERVERS = [
    "bench.serving:FastApiAlone",
    "bench.ade_http:AdeOnSqlite",
    "bench.ade_http:AdeOnPostgres",
]
Fresh = dict[Database, Callable[[], AbstractContextManager[str]]]


def queue_heats(only: list[str], sizes: Sizes, fresh: Fresh, console: Console) -> Iterator[Heat]:
    """Order the heats so that the contestants of one case run one after the other."""
    entrants = dict(queues(only, console))
    for database, arena in ARENAS.items():
        field = {name: queue for name, queue in entrants.items() if queue.database == database}
        labels = dict.fromkeys(case.label for queue in field.values() for case in queue.cases)
        for label in labels:
            for name, queue in field.items():
                for case in queue.cases:
                    if case.label == label:
                        run = partial(run_queue, name, case, sizes, fresh[database])
                        yield Heat(arena, label, queue.name, run, case.reference_label)


def queues(only: list[str], console: Console) -> Iterator[tuple[str, type[Contestant]]]:
    """Load the queues that can take part; say why the others do not."""
    for name in existing(QUEUES):
        try:
            queue: type[Contestant] = load(name)
            if only and queue.name not in [*only, RAW]:
                continue
            queue.prepare()
        except (ImportError, Unavailable) as reason:
            console.print(f"skipped {name.partition(':')[2]}: {reason}")
        else:
            yield name, queue


def run_queue(
    name: str, case: Case, sizes: Sizes, fresh: Callable[[], AbstractContextManager[str]]
) -> Sample:
    with fresh() as url:
        return run_in_child(Run(name, url, case, sizes))


def http_heats(only: list[str], seconds: float, fresh: Fresh) -> Iterator[Heat]:
    servers: list[HttpContestant] = [load(name)() for name in existing(SERVERS)]
    for case in HTTP_CASES:
        for server in servers:
            if not only or server.name in [*only, ALONE]:
                run = partial(run_server, server, case, seconds, fresh)
                yield Heat(HTTP, case.label, server.name, run, case.label)


def run_server(server: HttpContestant, case: HttpCase, seconds: float, fresh: Fresh) -> Sample:
    with fresh[server.database]() if server.database else nullcontext("") as url:
        return serving.once(server, case, url, seconds)


def existing(names: list[str]) -> list[str]:
    return [name for name in names if importlib.util.find_spec(name.partition(":")[0])]
