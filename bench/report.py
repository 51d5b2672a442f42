"""Show measurements: a table and a bar chart for each arena, and everything as JSON."""

from __future__ import annotations

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from bench.contest import Measurement

BAR_CELLS = 40


def show(measurements: list[Measurement], console: Console) -> None:
    for arena in dict.fromkeys(measurement.arena for measurement in measurements):
        within = [measurement for measurement in measurements if measurement.arena == arena]
        console.print(table(arena, within))
        console.print(chart(within))
    for measurement in measurements:
        if measurement.failure:
            where = f"{measurement.arena}, {measurement.contestant}, {measurement.name}"
            console.print(f"[red]failed:[/] {where}\n{measurement.failure}", highlight=False)


def table(arena: str, measurements: list[Measurement]) -> Table:
    """One row for each case, one column for each contestant: jobs/s and the ratio to the first."""
    drawn = Table(
        title=f"{arena}: jobs/s (ratio to the first column), median", title_justify="left"
    )
    drawn.add_column("case")
    contestants = list(dict.fromkeys(measurement.contestant for measurement in measurements))
    for contestant in contestants:
        drawn.add_column(contestant, justify="right")
    cells = {(m.name, m.contestant): cell(m, measurements) for m in measurements}
    for name in dict.fromkeys(measurement.name for measurement in measurements):
        drawn.add_row(name, *(cells.get((name, contestant), "–") for contestant in contestants))
    return drawn


def cell(measurement: Measurement, measurements: list[Measurement]) -> str:
    if measurement.failure:
        return "[red]failed[/]"
    p50, p99 = measurement.latency_seconds(50), measurement.latency_seconds(99)
    latency = "" if p50 is None or p99 is None else f"{p50 * 1000:.2f} / {p99 * 1000:.2f} ms"
    if measurement.name.startswith("pick-up"):
        return latency
    text = f"{measurement.jobs_per_second:,.0f}"
    share = ratio(measurement, measurements)
    if share is not None:
        text += f" ({share:.2f})"
    return f"{text}\n{latency}" if latency else text


def ratio(measurement: Measurement, measurements: list[Measurement]) -> float | None:
    """Set a rate against the arena's first contestant, in the same case or the plainest like it."""
    first = measurements[0].contestant
    if measurement.contestant == first or measurement.name.startswith("pick-up"):
        return None
    rates = {m.name: m.jobs_per_second for m in measurements if m.contestant == first}
    reference = rates.get(measurement.name) or rates.get(measurement.reference_label)
    return measurement.jobs_per_second / reference if reference else None


def chart(measurements: list[Measurement]) -> Table:
    """Bars for every rate, scaled within each case."""
    drawn = Table.grid(padding=(0, 1))
    rates = [m for m in measurements if m.jobs_per_second and not m.name.startswith("pick-up")]
    for name in dict.fromkeys(measurement.name for measurement in rates):
        group = [measurement for measurement in rates if measurement.name == name]
        if len(group) < 2:
            continue
        longest = max(measurement.jobs_per_second for measurement in group)
        drawn.add_row(f"[bold]{name}[/]")
        for measurement in group:
            rate = measurement.jobs_per_second
            drawn.add_row(
                f"  {measurement.contestant}",
                Bar(longest, 0, rate, width=BAR_CELLS),
                f"{rate:,.0f}",
            )
    return drawn


def as_json(measurements: list[Measurement]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for measurement in measurements:
        within = [other for other in measurements if other.arena == measurement.arena]
        p50, p99 = measurement.latency_seconds(50), measurement.latency_seconds(99)
        rows.append(
            {
                "arena": measurement.arena,
                "case": measurement.name,
                "contestant": measurement.contestant,
                "jobs_per_second": round(measurement.jobs_per_second, 1),
                "ratio": ratio(measurement, within),
                "latency_p50_ms": None if p50 is None else p50 * 1000,
                "latency_p99_ms": None if p99 is None else p99 * 1000,
                "rounds": [{"jobs": s.jobs, "seconds": s.seconds} for s in measurement.samples],
                "failure": measurement.failure or None,
            }
        )
    return rows
