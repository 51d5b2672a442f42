"""What operators keep from starting, on a dictionary."""

from tests.store.model.tables import Tables

from ade.store.rows import QueuePauseRow


class MemoryQueuePauses:
    """Read and change what is paused."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def list_all(self) -> list[QueuePauseRow]:
        """List what is paused, by scope."""
        return [self._tables.queue_pauses[scope] for scope in sorted(self._tables.queue_pauses)]

    def put(self, pause: QueuePauseRow) -> None:
        """Pause something, or say anew why it is paused."""
        known = self._tables.queue_pauses.get(pause.scope)
        since = pause.paused_at if known is None else known.paused_at
        self._tables.queue_pauses[pause.scope] = pause._replace(paused_at=since)

    def delete(self, scope: str) -> bool:
        """End a pause, and tell whether there was one."""
        return self._tables.queue_pauses.pop(scope, None) is not None

    def delete_of_gone_workers(self) -> int:
        """Forget the pauses of workers and agents that are not known any more."""
        known = {*self._tables.workers, *self._tables.hosts}
        gone = [row.scope for row in self.list_all() if row.worker and row.worker not in known]
        for scope in gone:
            self.delete(scope)
        return len(gone)
