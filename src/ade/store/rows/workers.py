"""The rows of workers, of the scalers that order them, and of what they share."""

from typing import NamedTuple


class WorkerRow(NamedTuple):
    """Hold a worker that is running, and as a JSON list the kinds that it can run.

    `slots` is 0 while it drains. `drains_at` is when it will begin to, if it has a wall time, and
    `block` the order to an engine that started it.
    """

    name: str
    host: str
    kinds: str
    started_at: int
    last_seen_at: int
    slots: int = 0
    drains_at: int | None = None
    block: str | None = None


class ScalerRow(NamedTuple):
    """Hold a scaler: which process decides, until when, and as JSON what it last saw and did."""

    name: str
    engine: str
    owner: str | None
    lease_expires_at: int | None
    seen_at: int
    state: str


class BlockRow(NamedTuple):
    """Hold a block: what became of one order to an engine."""

    name: str
    scaler: str
    engine_id: str | None
    status: str
    detail: str
    ordered_at: int
    started_at: int | None
    registered_at: int | None
    left_at: int | None
    finished_at: int | None


class Backlog(NamedTuple):
    """Count the jobs of a kind that wait for a worker, with the age and timeouts of them.

    `fits` is 1 for jobs whose timeout is within a limit.
    """

    kind: str
    fits: int
    jobs: int
    oldest_at: int
    timeout_ms: int


class EnvironmentArchive(NamedTuple):
    """Hold where the archive of an environment is, and what the environment was made of."""

    environment: str
    archive: str
    archive_bytes: int
    installed_bytes: int
    interpreter: str
    installer: str
    source_builds: int
    lock: str
    created_at: int
    used_at: int
