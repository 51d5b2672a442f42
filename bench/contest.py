"""Run heats in interleaved rounds and keep the medians.

The contestants of one case run one after the other, and the whole is repeated: what disturbs the
machine for a while then disturbs everyone, and one bad round does not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median, quantiles

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.cases import Sample
from bench.child import RunFailed


@dataclass(frozen=True)
class Heat:
    """One contestant in one case. Others are set against the first contestant of their arena."""

    arena: str
    label: str
    contestant: str
    run: Callable[[], Sample]
    reference_label: str = ""


@dataclass
class Measurement:
    """What one contestant reached in one case over all rounds."""

    arena: str
    name: str
    contestant: str
    reference_label: str
    samples: list[Sample] = field(default_factory=list)
    failure: str = ""

    @property
    def jobs_per_second(self) -> float:
        rates = [sample.jobs / sample.seconds for sample in self.samples if sample.seconds]
        return median(rates) if rates else 0.0

    def latency_seconds(self, percent: int) -> float | None:
        """A percentile over the latencies of all rounds, or None where none were taken."""
        latencies = [latency for sample in self.samples for latency in sample.latencies_seconds]
        if len(latencies) < 2:
            return None
        return quantiles(latencies, n=100, method="inclusive")[percent - 1]


def hold(heats: Iterable[Heat], rounds: int, console: Console) -> list[Measurement]:
    """Run every heat in each round. One that fails is left out of later rounds and reported."""
    measurements = {
        heat: Measurement(heat.arena, heat.label, heat.contestant, heat.reference_label)
        for heat in heats
    }
    with progress(console) as bar:
        task = bar.add_task("starting", total=rounds * len(measurements))
        for number in range(rounds):
            if not console.is_terminal:
                console.print(f"round {number + 1} of {rounds}, {len(measurements)} runs")
            for heat, measurement in measurements.items():
                bar.update(task, description=f"{heat.arena}: {heat.contestant}, {heat.label}")
                if not measurement.failure:
                    _run(heat, measurement)
                bar.advance(task)
    return list(measurements.values())


def progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<60}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _run(heat: Heat, measurement: Measurement) -> None:
    try:
        measurement.samples.append(heat.run())
    except RunFailed as failure:
        measurement.failure = str(failure)
