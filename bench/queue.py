"""The queue's speed: raw loops, peers and ADE on the same databases, in one run.

`scripts/bench queue --help` lists the options. Without any, a run takes about a quarter of an
hour; `--quick` (a smaller backlog, shorter loads) takes a few minutes and is noisier.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from pathlib import Path

from rich.console import Console

from bench import entrants, goals, postgres, report, sqlite
from bench.cases import FULL, QUICK
from bench.contest import hold
from bench.pinning import MEASURED_CORE, OTHER_CORE, pin

LOAD_SECONDS = 6.0
QUICK_LOAD_SECONDS = 2.0
PLAIN_COLUMNS = 140  # where there is no terminal whose width could be asked


def main() -> None:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwind, so that servers are stopped
    console = Console(width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    pin(OTHER_CORE)
    with postgres.running_server() as server:
        machine = {
            "python": platform.python_version(),
            "cores": {"measured": MEASURED_CORE, "other": OTHER_CORE},
            "postgres": server.describe(),
            "sqlite": sqlite.describe(),
        }
        console.print(machine)
        sizes, seconds = (QUICK, QUICK_LOAD_SECONDS) if options.quick else (FULL, LOAD_SECONDS)
        fresh: entrants.Fresh = {"postgres": server.fresh_database, "sqlite": sqlite.fresh_file}
        heats = [
            *entrants.queue_heats(options.only, sizes, fresh, console),
            *entrants.http_heats(options.only, seconds, fresh),
        ]
        heats = [heat for heat in heats if options.arena in (None, heat.arena)]
        measurements = hold(heats, options.rounds, console)
    report.show(measurements, console)
    checked = list(goals.goals(measurements))
    console.print(goals.table(checked))
    if options.json:
        result = {
            "machine": machine,
            "measurements": report.as_json(measurements),
            "goals": [goals.as_json(goal) for goal in checked],
        }
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def parse() -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="scripts/bench queue", description=summary)
    add = parser.add_argument
    add("--quick", action="store_true", help="a backlog of 10k instead of 100k, short loads")
    add("--rounds", type=int, default=3, help="how often everything is repeated (3)")
    add("--only", nargs="+", default=[], metavar="NAME", help="these beside the limits, e.g. ADE")
    add("--arena", choices=[*entrants.ARENAS.values(), entrants.HTTP], help="one of them only")
    add("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
