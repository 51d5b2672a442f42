"""Check a database for rows that contradict each other, and repair what is safe.

The constraints of the schema refuse rows that are impossible by themselves. What spans tables, and
what only a mistake of ADE, a restored copy or a hand at the database could leave, is looked for
here. Each check reads in a snapshot of its own; servers may run meanwhile. A repair names its rows,
a few hundred at a time, and changes each only if it is still wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ade.stages import transitions
from ade.store.consistency import JOBS_PER_READ_MAX
from ade.store.dialects.dialect import FIRST_ID
from ade.store.reading import SqlReading
from ade.store.rows import JobRef
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

IDS_SHOWN_MAX = 20
ROWS_PER_REPAIR_MAX = 500
REPAIRS_MAX = 100_000
Repair = Callable[..., int]  # of a transaction and `refs`: repair these rows, and count them
# Returns where the bytes of a digest are.
BlobPath = Callable[[str], Path]


@dataclass(frozen=True, slots=True)
class Check:
    """Name something that must not be, what a repair does about it, and what a person can do."""

    name: str
    purpose: str
    repair: str | None
    advice: str


@dataclass(slots=True)
class Finding:
    """Hold what a check found: how many, some of them, and how many were repaired."""

    name: str
    purpose: str
    count: int
    ids: list[str]
    repaired: int
    advice: str

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return asdict(self)


@dataclass(slots=True)
class _Seen:
    count: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, ref: JobRef) -> None:
        self.count += 1
        if len(self.ids) < IDS_SHOWN_MAX:
            self.ids.append(ref.id)


SWEPT = "A sweep then decides about it, as at the end of any wait."
ROW_CHECKS = (
    Check(
        "job_without_request",
        "jobs whose request is gone: they cannot be seen or run",
        "It gets a request of kind `lost`, which no worker runs.",
        "Its payload is gone: cancel it and submit it again.",
    ),
    Check(
        "request_without_job",
        "requests whose job is gone: they will never run",
        None,
        "Submit it again; the request can be deleted once that is done.",
    ),
    Check(
        "second_live_job_in_lane",
        "lanes with more than one job that is eligible or running",
        "All but the first wait for the lane again.",
        "",
    ),
    Check(
        "build_without_job",
        "builds that wait for a job that is gone",
        "It is cancelled; the next run or activation builds again.",
        "",
    ),
    Check(
        "build_not_settled",
        "builds that are queued although their job has ended",
        "It is settled as its job ended.",
        "",
    ),
    Check(
        "eligible_too_early",
        "jobs that could be claimed although their time or their build has not come",
        "It waits again.",
        "",
    ),
    Check(
        "waits_for_nothing",
        "queued jobs that are not eligible although nothing holds them",
        SWEPT,
        "",
    ),
    Check(
        "waits_for_wrong_kind",
        "jobs that wait for a worker of another kind than their own",
        SWEPT,
        "",
    ),
    Check(
        "lane_stands_still",
        "queued jobs in a lane that no job holds",
        "The first of the lane becomes eligible.",
        "",
    ),
    Check(
        "activation_without_build",
        "activations that wait for a version of which no build is being made",
        "The activation is given up; the active version stays.",
        "Activate the version again.",
    ),
    Check(
        "activation_of_other_configuration",
        "configurations whose active or pending version belongs to another one",
        None,
        "Activate a version of the configuration.",
    ),
    Check(
        "execution_without_job",
        "pieces of work that are registered for a job that is gone (ids of the work)",
        "The registration is deleted; the work can be submitted again.",
        "",
    ),
    Check(
        "artifact_without_job",
        "artifacts of jobs that are gone (ids of the jobs)",
        "Their rows are deleted; unused bytes are collected later.",
        "",
    ),
    Check(
        "events_without_job",
        "events of jobs that are gone (ids of the jobs)",
        "They are deleted.",
        "",
    ),
    Check(
        "output_without_job",
        "output of jobs that are gone (ids of the jobs)",
        "It is deleted.",
        "",
    ),
    # The last one: the other repairs may change what is counted.
    Check(
        "counts_differ",
        "counters of jobs that are not what there is (ids of the workspaces)",
        "All jobs are counted again.",
        "",
    ),
)
LOG_CHECK = Check(
    "event_log_gap",
    "jobs whose event log is not complete",
    None,
    "The job itself is not affected; readers of its events see a gap.",
)
BLOB_CHECK = Check(
    "artifact_bytes_missing",
    "artifacts whose bytes are not in the storage folder (ids of the artifacts)",
    None,
    "Restore the folder of blobs from a backup, or run the jobs again.",
)


def check_database(
    store: Session, *, repair: bool = False, blob_path: BlobPath | None = None
) -> Iterator[Finding]:
    """Run every check, and repair what is safe if asked to; yield what was found, if anything."""
    for check in ROW_CHECKS:
        finding = _look(store, check)
        if finding is None:
            continue
        if repair and check.repair is not None:
            finding.repaired = _repair(store, check.name)
            left = finding.count - finding.repaired
            finding.advice = " ".join(filter(None, [check.repair, check.advice]))
            if left > 0:
                finding.advice += f" {left} are left: run the check again."
        yield finding
    yield from _look_through(LOG_CHECK, _jobs_with_gaps(store))
    if blob_path is not None:
        yield from _look_through(BLOB_CHECK, store.read(_without_bytes(blob_path)))


def _look(store: Session, check: Check) -> Finding | None:
    def look(reading: SqlReading) -> tuple[int, list[JobRef]]:
        count = reading.consistency.count(check.name)
        return count, reading.consistency.find(check.name, IDS_SHOWN_MAX) if count else []

    count, refs = store.read(look)
    if not count:
        return None
    ids = [ref.id for ref in refs]
    advice = check.advice or "`ade db check --repair` repairs it."
    return Finding(check.name, check.purpose, count, ids, 0, advice)


def _repair(store: Session, name: str) -> int:
    """Repair a few hundred rows at a time, until none is found or none could be changed."""
    apply, repaired = _REPAIRS.get(name, _by_statement(name)), 0
    while repaired < REPAIRS_MAX:
        refs = store.read(lambda reading: reading.consistency.find(name, ROWS_PER_REPAIR_MAX))
        changed = store.change(partial(apply, refs=refs))
        repaired += changed
        if not changed:
            break
    return repaired


def _by_statement(name: str) -> Repair:
    return lambda tx, refs: tx.consistency.repair(name, refs)


def _settle_builds(tx: SqlTransaction, refs: list[JobRef]) -> int:
    """Record what became of builds, as the end of their jobs should have done."""
    found = [tx.builds.find(*ref) for ref in refs]
    transitions.settle_builds(
        tx, [JobRef(build.workspace_id, build.job_id) for build in found if build and build.job_id]
    )
    return len(refs) - len(set(refs) & set(tx.consistency.find("build_not_settled", len(refs))))


def _promote_lanes(tx: SqlTransaction, refs: list[JobRef]) -> int:
    """Lock the lanes, then make the first job of each that is still free eligible."""
    jobs = [job for ref in refs if (job := tx.read_job(ref)) is not None]
    lanes = transitions.lanes_of(jobs)
    if lanes:
        tx.lock_lanes(lanes)
    transitions.promote(tx, lanes)
    return len(jobs) if lanes else 0


def _count_anew(tx: SqlTransaction, refs: list[JobRef]) -> int:
    """Count all jobs again, whichever counters are wrong."""
    tx.job_counts.recount()
    return len(refs)


_REPAIRS: dict[str, Repair] = {
    "build_not_settled": _settle_builds,
    "lane_stands_still": _promote_lanes,
    "counts_differ": _count_anew,
}


def _jobs_with_gaps(store: Session) -> Iterator[JobRef]:
    """Look at the logs of all jobs, a few hundred in each snapshot."""
    after: JobRef | None = JobRef(FIRST_ID, FIRST_ID)
    while after is not None:
        wrong, after = store.read(partial(_gaps, after=after))
        yield from wrong


def _gaps(reading: SqlReading, *, after: JobRef) -> tuple[list[JobRef], JobRef | None]:
    return reading.consistency.gaps(after, JOBS_PER_READ_MAX)


def _without_bytes(blob_path: BlobPath) -> Callable[[SqlReading], list[JobRef]]:
    """List artifacts whose bytes are missing."""
    return lambda reading: [
        ref for ref, digest in reading.consistency.blobs() if not blob_path(digest).exists()
    ]


def _look_through(check: Check, found: Iterator[JobRef] | list[JobRef]) -> Iterator[Finding]:
    seen = _Seen()
    for ref in found:
        seen.add(ref)
    if seen.count:
        yield Finding(check.name, check.purpose, seen.count, seen.ids, 0, check.advice)
