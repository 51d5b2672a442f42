"""A worker under test: a real kernel on SQLite, real children, and a store that can be troubled."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from tests.databases import WORKSPACE

from ade.domain.errors import Unavailable
from ade.domain.events import EventType
from ade.domain.job import Status, StopRequest
from ade.domain.lease import LeaseRule
from ade.domain.limits import Limits
from ade.events.stream import follow, wait_until_ended
from ade.kernel import Kernel
from ade.kinds import Kind, Kinds
from ade.kinds.echo import Echo
from ade.stages.kernel_settings import KernelSettings
from ade.stages.stop import Stop
from ade.stages.submit.model import Submission
from ade.store.port import Verb
from ade.store.rows import JobRef, JobRow, NewEvent
from ade.store.session import Session
from ade.worker.runner import Runner
from ade.worker.subprocess_runner import SubprocessRunner
from ade.worker.worker import Worker, WorkerRules

HERE = Path(__file__).parent
# As ADE's own command, but with this folder on the path, so that rogues can be imported.
ROGUES = (
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
    "from ade_engine.subprocess_child import main; sys.exit(main())",
)
LIMITS = Limits(timeout_ms=30_000, cpu_ms=30_000, memory_mb=512, max_output_kb=1, max_artifacts=0)
# Renewals are so far apart that whatever happens soon happened without one.
SLOW_RENEWALS = LeaseRule(lease_seconds=120, margin_seconds=10, renew_seconds=60)
SHORT_LEASE = LeaseRule(lease_seconds=2.0, margin_seconds=1.0, renew_seconds=0.2)
PATIENCE_SECONDS = 20.0
EVENTS_MAX = 10_000


class RogueInputs(BaseModel):
    """Take anything."""

    model_config = ConfigDict(extra="allow")


class Rogue(Kind):
    """Misbehave (`rogues.py`)."""

    name = "rogue"
    inputs = RogueInputs
    entry = "rogues"
    env_version = "rogue@1"
    trusted = True


class Untrusted(Rogue):
    """Need isolation."""

    name = "untrusted"
    trusted = False


class TroubledStore(Session):
    """Be a real store, until a test makes writes fail or hang."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._trouble: dict[str, Literal["fails", "hangs"]] = {}
        self._all: Literal["fails", "hangs"] | None = None
        self._hanging: list[tuple[asyncio.Future[Sequence[Any]], Verb, list[Any]]] = []
        self.asked: list[str] = []
        self.items: dict[str, list[Any]] = {}

    def awrite(self, verb: Verb, items: list[Any]) -> "asyncio.Future[Sequence[Any]]":
        """Run a verb, refuse it, or keep it until `recover`."""
        name = verb.func.__name__  # type: ignore[attr-defined]
        self.asked.append(name)
        self.items.setdefault(name, []).extend(items)
        trouble = self._trouble.get(name, self._all)
        if trouble is None:
            return super().awrite(verb, items)
        future: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        if trouble == "fails":
            future.set_exception(Unavailable("The database cannot be reached: it is a test."))
        else:
            self._hanging.append((future, verb, items))
        return future

    def trouble(self, how: Literal["fails", "hangs"], *verbs: str) -> None:
        """Let writes fail or hang from now on, all or only these verbs."""
        if verbs:
            self._trouble |= dict.fromkeys(verbs, how)
        else:
            self._all = how

    def fail_what_hangs(self) -> None:
        """Break the connection while calls wait for it."""
        hanging, self._hanging = self._hanging, []
        for future, _, _ in hanging:
            if not future.done():
                future.set_exception(Unavailable("The connection broke: it is a test."))

    def recover(self) -> None:
        """Let writes through again, those that hang first."""
        self._trouble, self._all = {}, None
        hanging, self._hanging = self._hanging, []
        for future, verb, items in hanging:
            if not future.done():
                super().awrite(verb, items).add_done_callback(partial(_copy, future))


def _copy(to: "asyncio.Future[Sequence[Any]]", done: "asyncio.Future[Sequence[Any]]") -> None:
    if to.done():
        return
    error = done.exception()
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(done.result())


class Bench:
    """Submit jobs to a kernel whose worker is watched."""

    def __init__(self, url: str, jobs_dir: Path) -> None:
        self.jobs_dir = jobs_dir
        self.store = TroubledStore(url)
        self.rules(SLOW_RENEWALS)

    def rules(self, lease: LeaseRule, **others: Any) -> None:
        """Go by another lease."""
        self.kernel = Kernel(self.store, KernelSettings(lease=lease, queue_size=0, **others))

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def worker(self, runner: Runner | None = None, name: str = "worker", **rules: Any) -> Worker:
        """Make a worker that does not run yet."""
        usual: dict[str, Any] = {"slots": 2, "poll_seconds": 0.05, "drain_grace_seconds": 20}
        return Worker(
            name,
            kernel=self.kernel,
            kinds=Kinds([Echo(), Rogue(), Untrusted()]),
            runner=runner or SubprocessRunner(command=ROGUES, stop_grace_seconds=0.2),
            jobs_dir=self.jobs_dir,
            rules=WorkerRules(**usual | rules),
        )

    @contextlib.asynccontextmanager
    async def working(self, runner: Runner | None = None, **rules: Any) -> AsyncIterator[Worker]:
        """Run a worker while inside; what still runs at the end is handed back."""
        worker = self.worker(runner, **rules)
        task = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            self.store.recover()
            worker.drain()
            worker.drain()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await task

    async def submit(self, **inputs: Any) -> JobRow:
        """Ask for an echo, or with `do` for a rogue; `limits` and `kind` may differ."""
        limits = inputs.pop("limits", LIMITS)
        retries = inputs.pop("retries", 2)
        kind = inputs.pop("kind", "rogue" if "do" in inputs else "echo")
        payload = json.dumps({"inputs": inputs})
        accepted = await self.kernel.submit(
            Submission(WORKSPACE, kind, payload, limits, "someone", retries=retries)
        )
        return accepted.job

    async def stop(self, job: JobRow, request: StopRequest) -> None:
        """Cancel or pause a job."""
        await self.kernel.stop(Stop(ref(job), request, "someone"))

    async def event(self, job: JobRow, kind: EventType, after: int = 0) -> NewEvent:
        """Wait for an event."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for events in follow(self.kernel, ref(job), after):
                for event in events:
                    if event.type == kind:
                        return event
        raise AssertionError(f"the job ended without {kind.value}")

    async def pids(self, job: JobRow, after: int = 0) -> list[int]:
        """Wait until a rogue has reported its process ids."""
        report = await self.event(job, EventType.PROGRESS, after)
        return [int(word) for word in json.loads(report.data)["message"].split()]

    async def ended(self, job: JobRow) -> JobRow:
        """Wait until a job has ended."""
        found = await wait_until_ended(self.kernel, job, PATIENCE_SECONDS)
        assert found.finished_at is not None, found
        return found

    async def until(self, job: JobRow, status: Status) -> JobRow:
        """Wait until a job is in a status."""
        kinds = {Status.QUEUED: EventType.RELEASED, Status.PAUSED: EventType.PAUSED}
        await self.event(job, kinds[status])
        return await self.job(job)

    async def job(self, job: JobRow) -> JobRow:
        """Read a job."""
        found = await self.kernel.read(lambda reading: reading.read_job(ref(job)))
        assert found is not None
        return found

    async def result(self, job: JobRow) -> Any:
        """Read the result of a job."""
        body = await self.kernel.read(lambda reading: reading.read_result(ref(job)))
        return None if body is None else json.loads(body)

    async def events(self, job: JobRow) -> list[NewEvent]:
        """Read a job's log."""
        return await self.kernel.read(lambda r: r.read_events(ref(job), 0, EVENTS_MAX))

    async def log(self, job: JobRow) -> list[str]:
        """Read a job's log, only the words."""
        return [event.type for event in await self.events(job)]


def ref(job: JobRow) -> JobRef:
    """Name a job."""
    return JobRef(job.workspace_id, job.id)
