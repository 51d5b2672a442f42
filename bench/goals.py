"""The goals that the queue was built to, checked on what was just measured.

Each is a ratio or a latency of one run on one machine, so it holds or fails wherever it is run.
The scenes named here are what ADE's contestant must be able to arrange.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.table import Table

from bench.cases import Case
from bench.contest import Measurement
from bench.entrants import ADE, ALONE, ARENAS, HTTP, RAW
from bench.serving import HttpCase

BLOCKED_LANE = "20k behind a blocked lane"
FEW_WAITING = "1k waiting"
MANY_WAITING = "100k waiting"
MANY_FINISHED = "1M finished"
WHOLE_WORKER = "whole worker"
IN_PROCESS = "in process"
OVER_NOTIFY = "over NOTIFY"

BATCH = 100
POSTGRES_PEERS = ("PgQueuer", "Procrastinate", "graphile-worker")


@dataclass(frozen=True)
class Goal:
    """A bound on a figure; `at_most` says on which side of it to stay. NaN: not measured."""

    text: str
    bound: float
    figure: float
    at_most: bool = False

    @property
    def verdict(self) -> str:
        if math.isnan(self.figure):
            return "not measured"
        met = self.figure <= self.bound if self.at_most else self.figure >= self.bound
        return "met" if met else "missed"


def goals(measurements: list[Measurement]) -> Iterator[Goal]:
    found = {(m.arena, m.contestant, m.name): m for m in measurements if m.samples}

    def rate(arena: str, contestant: str, label: str) -> float:
        measurement = found.get((arena, contestant, label))
        return measurement.jobs_per_second if measurement else math.nan

    def best_drain(arena: str, contestant: str) -> float:
        """A peer may use whatever batch suits it; ADE is held to its own at 100."""
        rates = [
            m.jobs_per_second
            for m in found.values()
            if (m.arena, m.contestant) == (arena, contestant) and m.name.startswith("drain")
        ]
        return max(rates, default=math.nan)

    def pickup_ms(arena: str, scene: str) -> float:
        measurement = found.get((arena, ADE, Case("pickup", scene=scene).label))
        latency = measurement.latency_seconds(50) if measurement else None
        return math.nan if latency is None else latency * 1000

    postgres, sqlite = ARENAS["postgres"], ARENAS["sqlite"]
    yield from drain_goals(rate, best_drain, postgres, POSTGRES_PEERS)
    yield from drain_goals(rate, best_drain, sqlite, ("huey",))
    yield from http_goals(rate)
    yield Goal("pick-up p50 in process, SQLite, ms", 2, pickup_ms(sqlite, IN_PROCESS), True)
    yield Goal("pick-up p50 over NOTIFY, ms", 4, pickup_ms(postgres, OVER_NOTIFY), True)
    for arena in (postgres, sqlite):
        yield from scene_goals(rate, arena)


Rate = Callable[[str, str, str], float]


def drain_goals(
    rate: Rate, best_drain: Callable[[str, str], float], arena: str, peers: tuple[str, ...]
) -> Iterator[Goal]:
    for workers in (1, 4):
        case = Case("drain", batch=BATCH, workers=workers)
        raw = rate(arena, RAW, case.label)
        if math.isnan(raw):
            raw = rate(arena, RAW, case.reference_label)
        yield Goal(
            f"{arena}, {case.label}, to the raw loop", 0.4, rate(arena, ADE, case.label) / raw
        )
    own = rate(arena, ADE, Case("drain", batch=BATCH).label)
    for peer in peers:
        yield Goal(f"{arena}, drain by {BATCH}, to {peer}'s best", 1, own / best_drain(arena, peer))


def http_goals(rate: Rate) -> Iterator[Goal]:
    one, many = (HttpCase(jobs, 1).label for jobs in (1, 500))
    for server in (f"{ADE} on SQLite", f"{ADE} on PostgreSQL"):
        share = rate(HTTP, server, one) / rate(HTTP, ALONE, one)
        yield Goal(f"{server}, submissions over HTTP, to FastAPI alone", 0.7, share)
        yield Goal(f"{server}, batches over HTTP, jobs/s", 30_000, rate(HTTP, server, many))


def scene_goals(rate: Rate, arena: str) -> Iterator[Goal]:
    def slowdown(scene: str, than: str = "") -> float:
        plain, staged = (
            rate(arena, ADE, Case("drain", batch=BATCH, scene=s).label) for s in (than, scene)
        )
        return plain / staged

    yield Goal(f"{arena}, slower beside a blocked lane, times", 1.2, slowdown(BLOCKED_LANE), True)
    yield Goal(
        f"{arena}, slower with 100k than with 1k waiting, times",
        1.5,
        slowdown(MANY_WAITING, than=FEW_WAITING),
        True,
    )
    yield Goal(f"{arena}, slower beside 1M finished, times", 1.2, slowdown(MANY_FINISHED), True)


def as_json(goal: Goal) -> dict[str, object]:
    figure = None if math.isnan(goal.figure) else goal.figure
    return {**vars(goal), "figure": figure, "verdict": goal.verdict}


def table(checked: list[Goal]) -> Table:
    drawn = Table(title="Goals", title_justify="left")
    for heading in ("goal", "bound", "figure", "verdict"):
        drawn.add_column(heading, justify="left" if heading in ("goal", "verdict") else "right")
    colours = {"met": "green", "missed": "red", "not measured": "dim"}
    for goal in checked:
        sign = "≤" if goal.at_most else "≥"
        figure = "–" if math.isnan(goal.figure) else f"{goal.figure:,.2f}"
        verdict = f"[{colours[goal.verdict]}]{goal.verdict}[/]"
        drawn.add_row(goal.text, f"{sign} {goal.bound:,}", figure, verdict)
    return drawn
