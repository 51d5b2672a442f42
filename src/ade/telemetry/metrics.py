"""The numbers that ADE tells Prometheus, in base units."""

from prometheus_client import CollectorRegistry, Counter

from ade.stages.expire import Swept

REGISTRY = CollectorRegistry()

_CLAIMED = Counter("ade_jobs_claimed", "Jobs claimed by local workers.", registry=REGISTRY)
_FINISHED = Counter(
    "ade_jobs_finished", "Attempts whose end was recorded.", ["kind", "status"], registry=REGISTRY
)
_FENCE_REJECTED = Counter(
    "ade_fence_rejected",
    "Results discarded because the lease was lost.",
    ["where"],
    registry=REGISTRY,
)
_SWEPT = Counter("ade_swept", "Rows repaired by the sweeper.", ["what"], registry=REGISTRY)


def claimed(jobs: int) -> None:
    """Count claimed jobs."""
    _CLAIMED.inc(jobs)


def finished(kind: str, status: str) -> None:
    """Count an attempt whose end was recorded."""
    _FINISHED.labels(kind, status).inc()


def fence_rejected(where: str) -> None:
    """Count a result that was discarded because its lease was lost."""
    _FENCE_REJECTED.labels(where).inc()


def swept(found: Swept) -> None:
    """Count what a sweep repaired."""
    for what in ("lost", "timed_out", "due", "lanes"):
        _SWEPT.labels(what).inc(getattr(found, what))
