"""The sandboxed jobs of this host as a part of the agent: the same worker as beside a database."""

from typing import Any

from ade.worker.worker import Worker


class SandboxedPart:
    """Run jobs in the sandbox until it is drained."""

    def __init__(self, worker: Worker, kinds: list[str]) -> None:
        self._worker = worker
        self._kinds = kinds

    async def run(self) -> None:
        """Work until drained."""
        await self._worker.run()

    def drain(self) -> None:
        """Take no more jobs; a second call hands back at once what still runs."""
        self._worker.drain()

    def active_jobs(self) -> list[str]:
        """Name none: the leases of these jobs are renewed one by one, and not by heartbeats."""
        return []

    def facts(self) -> dict[str, Any]:
        """Say of the part what a heartbeat tells."""
        return {
            "sandboxed": {
                "kinds": self._kinds,
                "slots": self._worker.slots,
                "running": self._worker.running,
            }
        }
