"""The metrics of this process for Prometheus, in base units.

They are kept in memory and start at zero with the process. The API, the worker and the sweeper call
the functions below; `/metrics` prints all metrics, with the depth of the queue at that moment.
"""

from collections.abc import Mapping
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ade.domain.scaler_state import ScalerState
from ade.stages.expire import Swept

LATENCY_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
BUILD_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
GROUP_SIZES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2000)
REGISTRY = CollectorRegistry()

_SUBMITTED = Counter(
    "ade_jobs_submitted",
    "Jobs submitted, by outcome: accepted, deduplicated, replayed, or the code of the refusal.",
    ["outcome"],
    registry=REGISTRY,
)
_BATCH = Histogram(
    "ade_batch_jobs", "Jobs in one batch request.", buckets=GROUP_SIZES, registry=REGISTRY
)
_COMMIT = Histogram(
    "ade_commit_items", "Items in one group commit.", buckets=GROUP_SIZES, registry=REGISTRY
)
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
_BUILDS = Histogram(
    "ade_build_seconds",
    "Time that builds took, by how they ended.",
    ["status"],
    buckets=BUILD_SECONDS,
    registry=REGISTRY,
)
_SWEPT = Counter("ade_swept", "Rows repaired by the sweeper.", ["what"], registry=REGISTRY)
_QUEUE = Gauge(
    "ade_queue_jobs", "Live jobs by pool and status.", ["pool", "status"], registry=REGISTRY
)
_SCALER_BLOCKS = Gauge(
    "ade_scaler_blocks",
    "Blocks of pilots at the scaler's last look, by state: queued, starting, live.",
    ["scaler", "state"],
    registry=REGISTRY,
)
_SCALER_WAITING = Gauge(
    "ade_scaler_waiting_jobs",
    "Jobs that pilots could take, at the scaler's last look.",
    ["scaler"],
    registry=REGISTRY,
)
_SCALER_FAILURES = Gauge(
    "ade_scaler_failures_in_a_row",
    "Rounds in a row in which a block ended before its pilot registered, or soon after.",
    ["scaler"],
    registry=REGISTRY,
)
_SCALER_AWAY = Gauge(
    "ade_scaler_engine_away",
    "1 while the engine does not answer the scaler, else 0.",
    ["scaler"],
    registry=REGISTRY,
)
_SCALER_CHANGES = Counter(
    "ade_scaler_changes",
    "What scalers did and saw: blocks ordered, cancelled, failed; times that an engine went away.",
    ["scaler", "what"],
    registry=REGISTRY,
)
_STREAMS = Gauge("ade_event_streams", "Event streams that are open.", registry=REGISTRY)
_REFUSED = Counter(
    "ade_connections_refused",
    "Connections that the server refused or ended, by the limit that they exceeded.",
    ["limit"],
    registry=REGISTRY,
)
_WRONG_KEYS = Counter("ade_wrong_keys", "Requests with a key that is not valid.", registry=REGISTRY)
_REQUEST = Histogram(
    "ade_http_request_seconds",
    "Time from a request to the end of its answer, by route and status class.",
    ["method", "route", "status"],
    buckets=LATENCY_SECONDS,
    registry=REGISTRY,
)

# Looking up a label costs more than counting, so those of frequent calls are kept.
_outcomes: dict[str, Counter] = {}
_requests: dict[tuple[str, str, int], Histogram] = {}
# The totals of scalers when they were last read: a counter of this process starts at zero.
_scaler_totals: dict[tuple[str, str], int] = {}


def submitted(outcome: str, jobs: int = 1) -> None:
    """Count submissions by their outcome."""
    counter = _outcomes.get(outcome)
    if counter is None:
        counter = _outcomes[outcome] = _SUBMITTED.labels(outcome)
    counter.inc(jobs)


def batched(jobs: int) -> None:
    """Record the size of a batch."""
    _BATCH.observe(jobs)


def committed(items: int) -> None:
    """Record how many items one commit carried."""
    _COMMIT.observe(items)


def claimed(jobs: int) -> None:
    """Count claimed jobs."""
    _CLAIMED.inc(jobs)


def finished(kind: str, status: str) -> None:
    """Count an attempt whose end was recorded."""
    _FINISHED.labels(kind, status).inc()


def fence_rejected(where: str) -> None:
    """Count a result that was discarded because its lease was lost."""
    _FENCE_REJECTED.labels(where).inc()


def built(status: str, seconds: float) -> None:
    """Record how long a build took."""
    _BUILDS.labels(status).observe(seconds)


def swept(found: Swept) -> None:
    """Count what a sweep repaired."""
    for what in ("lost", "timed_out", "due", "lanes"):
        count = getattr(found, what)
        if count:
            _SWEPT.labels(what).inc(count)


def queue(depths: Mapping[tuple[str, str], int]) -> None:
    """Set the depth of the queue."""
    _QUEUE.clear()
    for (pool, status), jobs in depths.items():
        _QUEUE.labels(pool, status).set(jobs)


def scalers(states: Mapping[str, ScalerState]) -> None:
    """Set what the scalers last saw, and count what they did since the last call."""
    for gauge in (_SCALER_BLOCKS, _SCALER_WAITING, _SCALER_FAILURES, _SCALER_AWAY):
        gauge.clear()
    for name, state in states.items():
        for key in ("queued", "starting", "live"):
            _SCALER_BLOCKS.labels(name, key).set(state.signals.get(f"{key}_blocks", 0))
        _SCALER_WAITING.labels(name).set(state.signals.get("waiting", 0))
        _SCALER_FAILURES.labels(name).set(state.memory.failures)
        _SCALER_AWAY.labels(name).set(state.away_since_us is not None)
        for what, total in asdict(state.totals).items():
            counted = _scaler_totals.get((name, what), total)
            _SCALER_CHANGES.labels(name, what).inc(max(total - counted, 0))
            _scaler_totals[name, what] = total


def stream_opened() -> None:
    """Count an event stream."""
    _STREAMS.inc()


def stream_closed() -> None:
    """Count the end of an event stream."""
    _STREAMS.dec()


def connection_refused(limit: str) -> None:
    """Count a connection that exceeded a limit."""
    _REFUSED.labels(limit).inc()


def wrong_key() -> None:
    """Count a request with a key that is not valid."""
    _WRONG_KEYS.inc()


def answered(method: str, route: str, status: int, seconds: float) -> None:
    """Record how long a request took."""
    key = (method, route, status // 100)
    histogram = _requests.get(key)
    if histogram is None:
        histogram = _REQUEST.labels(method, route, f"{status // 100}xx")
        _requests[key] = histogram
    histogram.observe(seconds)


def exposition() -> bytes:
    """Return all metrics in Prometheus' text format."""
    return generate_latest(REGISTRY)
