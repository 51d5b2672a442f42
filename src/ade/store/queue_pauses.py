"""What operators keep from starting."""

from ade.store.executor import Executor
from ade.store.rows import QueuePauseRow


class QueuePauseReading:
    """Read what is paused."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def list_all(self) -> list[QueuePauseRow]:
        """List what is paused, by scope."""
        return [QueuePauseRow._make(row) for row in self._sql.rows("list_queue_pauses")]


class QueuePauseChanges(QueuePauseReading):
    """Change what is paused."""

    def put(self, pause: QueuePauseRow) -> None:
        """Pause something, or say anew why it is paused; the time of the first pause stays."""
        changed = self._sql.run("change_queue_pause", pause.scope, pause.reason, pause.paused_by)
        if not changed:
            self._sql.run("insert_queue_pause", *pause)

    def delete_of_gone_workers(self) -> int:
        """Forget the pauses of workers and agents that are not known any more."""
        return self._sql.run("delete_pauses_of_gone_workers")

    def delete(self, scope: str) -> bool:
        """End a pause, and tell whether there was one."""
        return self._sql.run("delete_queue_pause", scope) == 1
