"""Scalers, their blocks, and the work that waits for pilots.

The model. A scaler has a name, and one process at a time decides for it: the one that holds the
lease in its row. Every change of its blocks renews that lease first, in the same transaction, so a
process that lost it changes nothing.
"""

from ade.domain.errors import Conflict
from ade.domain.units import MICROSECONDS
from ade.store.executor import Executor
from ade.store.rows import Backlog, BlockRow, ScalerRow

BLOCKS_LISTED_MAX = 1000


class ScalingReading:
    """Read the scalers, their blocks and the work that waits for pilots."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def scalers(self) -> list[ScalerRow]:
        """List the scalers by name."""
        return [ScalerRow._make(row) for row in self._sql.rows("list_scalers")]

    def find(self, name: str) -> ScalerRow | None:
        """Find a scaler by its name."""
        found = self._sql.first("find_scaler", name)
        return ScalerRow._make(found) if found else None

    def blocks(self, scaler: str, limit: int = BLOCKS_LISTED_MAX) -> list[BlockRow]:
        """List the newest blocks of a scaler."""
        return [BlockRow._make(row) for row in self._sql.rows("list_blocks", scaler, limit)]

    def live_blocks(self, scaler: str) -> list[BlockRow]:
        """List the blocks of a scaler that have not ended, newest first."""
        return [BlockRow._make(row) for row in self._sql.rows("live_blocks", scaler)]

    def backlog(self, pool: str, timeout_ms_max: int) -> list[Backlog]:
        """Count the jobs that wait for a worker, by kind and by whether their timeout fits."""
        return [Backlog._make(row) for row in self._sql.rows("backlog", pool, timeout_ms_max)]

    def running_by_owner(self, pool: str) -> dict[str, int]:
        """Count the running jobs by the worker that holds them."""
        return {owner: int(count) for owner, count in self._sql.rows("count_by_owner", pool)}


class ScalingChanges(ScalingReading):
    """Hold the lease of a scaler, and change its blocks under it."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def lead(self, name: str, engine: str, owner: str, lease_seconds: float) -> bool:
        """Take or keep the lease; False if another process holds it."""
        expires_at = self._now_us + int(lease_seconds * MICROSECONDS)
        if self._sql.run("lead", name, engine, owner, expires_at, self._now_us):
            return True
        if self.find(name) is not None:
            return False
        self._sql.run("insert_scaler", name, engine, owner, expires_at, self._now_us, "{}")
        return True

    def change(
        self,
        leader: tuple[str, str, str, float],
        state: str | None,
        new: list[BlockRow],
        changed: list[BlockRow],
        kept_seconds: float,
    ) -> None:
        """Write blocks and state under the lease, or raise Conflict if it is lost."""
        if not self.lead(*leader):
            raise Conflict(f"Another process decides for the scaler {leader[0]}.")
        for block in new:
            self._sql.run("insert_block", *block)
        for block in changed:
            self._sql.run(
                "change_block",
                *(block.name, block.engine_id, block.status, block.detail),
                *(block.started_at, block.finished_at),
            )
        old = self._now_us - int(kept_seconds * MICROSECONDS)
        self._sql.run("delete_blocks", leader[0], old)
        if state is not None:
            self._sql.run("record_scaler", leader[0], leader[2], state)

    def stop_leading(self, name: str, owner: str) -> None:
        """Give the lease back."""
        self._sql.run("stop_leading", name, owner, self._now_us)
