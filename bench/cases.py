"""What is timed, and what a contestant must offer so that it can be timed.

A contestant is a class. Its constructor is given the URL of a fresh, empty database and makes its
schema there; each of its methods is called at most once, in its own process. Preparation
(connections, schema, imports) is not timed: a method starts its clock when the work starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Database = Literal["postgres", "sqlite"]
Operation = Literal["enqueue", "bulk", "drain", "pickup"]

BULK_ROWS = 1000  # jobs in one call, and one transaction, of every bulk enqueue


@dataclass(frozen=True)
class Case:
    """One thing to time. `jobs_max` keeps slow cases short: only so many jobs are done."""

    operation: Operation
    batch: int = 1
    workers: int = 1
    scene: str = ""
    jobs_max: int | None = None

    @property
    def label(self) -> str:
        words = {
            "enqueue": "enqueue one by one",
            "bulk": f"enqueue by {BULK_ROWS:,}",
            "drain": f"drain by {self.batch:,}",
            "pickup": "pick-up of one job",
        }[self.operation]
        if self.workers > 1:
            words += f", {self.workers} workers"
        return f"{words}, {self.scene}" if self.scene else words

    @property
    def reference_label(self) -> str:
        """The plainest case that this one is compared with when the raw loop lacks it."""
        return Case(self.operation, batch=self.batch).label


@dataclass(frozen=True)
class Sizes:
    """How many jobs each operation takes."""

    enqueue: int
    bulk: int
    backlog: int
    pickup: int

    def jobs(self, case: Case) -> int:
        jobs = {
            "enqueue": self.enqueue,
            "bulk": self.bulk,
            "drain": self.backlog,
            "pickup": self.pickup,
        }[case.operation]
        return min(jobs, case.jobs_max or jobs)


FULL = Sizes(enqueue=20_000, bulk=100_000, backlog=100_000, pickup=300)
QUICK = Sizes(enqueue=3_000, bulk=10_000, backlog=10_000, pickup=100)


@dataclass(frozen=True)
class Sample:
    """What one timed run gave: jobs done in so many seconds, or latencies, or both."""

    jobs: int
    seconds: float
    latencies_seconds: tuple[float, ...] = ()


class Unavailable(Exception):
    """A contestant cannot take part on this machine; the message says why."""


class Contestant:
    """A queue under test. Only the operations named in `cases` are called."""

    name: ClassVar[str]
    database: ClassVar[Database]
    cases: ClassVar[tuple[Case, ...]]

    def __init__(self, url: str) -> None:
        """Keep the database's URL (for SQLite: a file's path) and make the schema."""
        self.url = url

    @classmethod
    def prepare(cls) -> None:
        """Fetch what the contestant needs, once for each benchmark, or raise Unavailable."""

    def arrange(self, scene: str) -> None:
        """Set up the scene that a case names, before the backlog is filled. Not timed."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Enqueue the backlog that `drain` will work on. Not timed."""
        self.enqueue_bulk(count)

    def enqueue(self, count: int) -> Sample:
        """Enqueue jobs one by one, each durable before the next."""
        raise NotImplementedError

    def enqueue_bulk(self, count: int) -> Sample:
        """Enqueue jobs, BULK_ROWS in each transaction."""
        raise NotImplementedError

    def drain(self, count: int, batch: int, workers: int) -> Sample:
        """Claim, run as no-ops and finish `count` jobs of the backlog, or slightly more.

        Workers are processes. The clock stops when the last of those jobs is durably finished.
        """
        raise NotImplementedError

    def pickup(self, count: int) -> Sample:
        """Submit jobs one at a time to an idle worker; time from each submit to the job's start."""
        raise NotImplementedError
