"""Let ways of doing one thing take turns, so that all meet the same machine, and tell the times."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from rich.console import Console
from rich.progress import track
from rich.table import Table

Start = Callable[[], Awaitable[None]]
BARE = "python -I -c pass"
PAUSE_SECONDS = 0.005
KEY = "ade_bench_key_of_no_worth"


@dataclass
class Entrant:
    """Hold one way, and the times it took; a slow one may sit out most rounds."""

    name: str
    start: Start
    times_ms: list[float] = field(default_factory=list)
    every: int = 1

    def quantile(self, share: float) -> float:
        ordered = sorted(self.times_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def command(*argv: str) -> Start:
    """Run a program to its end."""

    async def start() -> None:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        assert await process.wait() == 0, argv

    return start


async def contest(entrants: list[Entrant], rounds: int) -> None:
    """Let every entrant run once per round; who cannot run at all is left out."""
    for entrant in list(entrants):
        try:
            await entrant.start()
            await entrant.start()
        except (AssertionError, OSError):
            entrants.remove(entrant)
    for number in track(range(rounds), "rounds", disable=not sys.stdout.isatty()):
        for entrant in entrants:
            if number % entrant.every:
                continue
            began = time.perf_counter()
            await entrant.start()
            entrant.times_ms.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PAUSE_SECONDS)


def show(entrants: list[Entrant], console: Console, reference: str) -> None:
    """Print the times, and how they compare with one of them."""
    bare = next(entrant for entrant in entrants if entrant.name == reference).quantile(0.5)
    table = Table("entrant", "p50 ms", "p99 ms", f"p50 / {reference}")
    for entrant in entrants:
        p50, p99 = entrant.quantile(0.5), entrant.quantile(0.99)
        table.add_row(entrant.name, f"{p50:.1f}", f"{p99:.1f}", f"{p50 / bare:.2f}")
    console.print(table)


def goal(text: str, found: str, met: bool) -> dict[str, object]:
    """Say what was wanted, what was found, and whether that will do."""
    return {"goal": text, "found": found, "met": met}


def goal_table(goals: list[dict[str, object]]) -> Table:
    table = Table("goal", "found", "met")
    for one in goals:
        table.add_row(str(one["goal"]), str(one["found"]), "yes" if one["met"] else "no")
    return table


@asynccontextmanager
async def served(**settings: str) -> AsyncIterator[httpx.AsyncClient]:
    """Serve ADE on its embedded database as people start it, and talk to it."""
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as folder:
        environ = {
            "PATH": os.environ["PATH"],
            "ADE_STORAGE_DATA_DIR": folder,
            "ADE_BOOTSTRAP_API_KEY": KEY,
            "ADE_PORT": "0",
            "ADE_LOG_LEVEL": "error",
            "ADE_QUEUE_SIZE": "0",
            **settings,
        }
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ade", "serve", env=environ, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            address = (await server.stdout.readline()).decode().split()[-1]
            headers = {"Authorization": f"Bearer {KEY}"}
            async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
                yield client
        finally:
            server.kill()
            await server.wait()
