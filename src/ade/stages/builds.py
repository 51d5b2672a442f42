"""Let runs start, or fail, when the build that they wait for has ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from ade.domain.job import Cause, Status
from ade.domain.outcome import Category, JobError
from ade.stages import transitions
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import JobRef


@dataclass(frozen=True, slots=True)
class BuildEnded:
    """Say that a build is terminal, and why it failed if it did."""

    workspace_id: str
    build_id: str
    failure: str | None = None


def settle(settings: KernelSettings, tx: Transaction, ended: list[BuildEnded]) -> list[int]:
    """Make the runs that waited eligible, or fail them with the build's reason; count them."""
    return [_settle(tx, build) for build in ended]


def _settle(tx: Transaction, build: BuildEnded) -> int:
    waiting = [
        job
        for job in tx.jobs_of_build(build.workspace_id, build.build_id)
        if job.status == Status.QUEUED and job.not_before is None
    ]
    if build.failure is None:
        moves = [
            transitions.move(job, Status.QUEUED, Cause.BUILD_READY, tx.now_us, eligible=True)
            for job in waiting
        ]
    else:
        error = JobError(
            Category.DEPENDENCY_ERROR, "BUILD_FAILED", f"build failed: {build.failure}"
        )
        moves = [
            transitions.move(job, Status.FAILED, Cause.UNRUNNABLE, tx.now_us, error=error)
            for job in waiting
        ]
    transitions.apply(tx, moves)
    transitions.notify_claimers(tx, moves, waiting)
    return len(waiting)


def settled_builds(tx: Transaction, builds: Iterable[tuple[str, str | None]]) -> set[str]:
    """Find which builds are terminal, so that nobody needs to wait for them."""
    refs = {JobRef(workspace_id, id_) for workspace_id, id_ in builds if id_ is not None}
    return tx.builds.settled(list(refs)) if refs else set()
