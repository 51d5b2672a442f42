"""A cell of `1 + 1`: a fresh sandbox and a durable record, beside kernels that have neither.

`scripts/bench cells` sends the cell over HTTP with `Prefer: wait`, on the embedded database with
its defaults, and lets it take turns with a bare interpreter and with a Jupyter kernel: warm, which
keeps its state from cell to cell and writes nothing down, and cold, started for one cell. Read the
ratios; the run ends with the goals.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import platform
import sys
from pathlib import Path

import httpx
import uvloop
from jupyter_client.manager import AsyncKernelManager
from rich.console import Console

from bench.race import Entrant, Start, command, contest, goal, goal_table, served, show

CELL = "1 + 1"
OURS, WARM, COLD = "ADE, over HTTP", "Jupyter kernel, warm", "Jupyter kernel, cold"
BARE = f"python -I -c '{CELL}'"
JOBS = "/api/v1/workspaces/default/jobs"
COLD_EVERY = 10
GOAL_OF_WARM, GOAL_UNDER_COLD = 1.7, 30


def main() -> None:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 120)
    uvloop.run(measure(options, console))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench cells", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="cells per entrant")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    return parser.parse_args()


async def measure(options: argparse.Namespace, console: Console) -> None:
    console.print({"python": platform.python_version()})
    manager, kernel = await started_kernel()
    try:
        async with served() as client:
            entrants = [
                Entrant(OURS, cell(client)),
                Entrant(WARM, warm(kernel)),
                Entrant(COLD, cold, every=COLD_EVERY),
                Entrant(BARE, command(sys.executable, "-I", "-c", CELL)),
            ]
            await contest(entrants, options.rounds)
            await see_that_all_ran(client, options.rounds)
    finally:
        await stop(manager, kernel)
    show(entrants, console, WARM)
    goals = check_goals(entrants)
    console.print(goal_table(goals))
    if options.json:
        times = {e.name: {"p50": e.quantile(0.5), "p99": e.quantile(0.99)} for e in entrants}
        options.json.write_text(json.dumps({"ms": times, "goals": goals}, indent=2) + "\n")


def cell(client: httpx.AsyncClient) -> Start:
    """Run the cell each time anew: another revision is other work."""
    revisions = itertools.count()

    async def start() -> None:
        body = {
            "job_type": "object_execute",
            "document_revision_id": f"r{next(revisions)}",
            "inputs": {"source": CELL},
        }
        wishes = {"Prefer": "wait=30, return=representation"}
        answer = await client.post(JOBS, json=body, headers=wishes)
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["outputs"]["result_json"] == 2, answer.text

    return start


async def see_that_all_ran(client: httpx.AsyncClient, rounds: int) -> None:
    """Count the records: each round trip was a separate job in the sandbox."""
    jobs = (await client.get(JOBS, params={"limit": min(200, rounds)})).json()["items"]
    assert all(job["attempt"] == 1 and job["isolation"] for job in jobs)
    assert len({job["job_id"] for job in jobs}) == min(200, rounds)


def warm(kernel: object) -> Start:
    async def start() -> None:
        await run_in(kernel)

    return start


async def cold() -> None:
    manager, kernel = await started_kernel()
    try:
        await run_in(kernel)
    finally:
        asyncio.get_running_loop().create_task(stop(manager, kernel))


async def started_kernel() -> tuple[AsyncKernelManager, object]:
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")
    await manager.start_kernel()
    kernel = manager.client()
    kernel.start_channels()
    await kernel.wait_for_ready(timeout=60)
    return manager, kernel


async def run_in(kernel: object) -> None:
    """Run the cell and wait for its value, as a notebook does."""
    values: list[str] = []

    def hear(message: dict[str, dict[str, dict[str, str]]]) -> None:
        if message["msg_type"] == "execute_result":
            values.append(message["content"]["data"]["text/plain"])

    await kernel.execute_interactive(CELL, output_hook=hear, timeout=60)
    assert values == ["2"], values


async def stop(manager: AsyncKernelManager, kernel: object) -> None:
    kernel.stop_channels()
    await manager.shutdown_kernel(now=True)


def check_goals(entrants: list[Entrant]) -> list[dict[str, object]]:
    times = {entrant.name: entrant.quantile(0.5) for entrant in entrants}
    of_warm, under_cold = times[OURS] / times[WARM], times[COLD] / times[OURS]
    return [
        goal(f"at most {GOAL_OF_WARM}x a warm kernel", f"{of_warm:.2f}x", of_warm <= GOAL_OF_WARM),
        goal(
            f"at least {GOAL_UNDER_COLD}x below a cold kernel",
            f"{under_cold:.1f}x",
            under_cold >= GOAL_UNDER_COLD,
        ),
    ]


if __name__ == "__main__":
    main()
