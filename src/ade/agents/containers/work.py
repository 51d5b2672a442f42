"""The containers of this host as a part of the agent: take jobs, run them, deliver their ends.

The agent decides how many containers run at once: it asks for a job only while a slot is free. A
slot is free again once the end of its container is on disk. Delivering goes on beside; while too
many ends wait for a server that is away, no more jobs are taken.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from ade.agents.containers.attempt import ContainerAttempt, Host
from ade.agents.containers.attempt_folder import END, AttemptFolder, StateFolder
from ade.agents.containers.delivery import OutputDelivery, deliver_end
from ade.agents.containers.engine import ContainerEngineAway
from ade.agents.containers.order import ContainerError, Order, identity_of, read_order
from ade.agents.containers.recover import recover
from ade.agents.contract_calls import Backoff
from ade.domain.errors import AdeError
from ade.domain.vocabulary import AgentStatus

UNDELIVERED_MAX = 200
QUICK_SECONDS = 1.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkRules:
    """Say how many containers run at once, and how long they may take to end at a drain."""

    slots: int = 1
    drain_seconds: float = 30.0
    deliver_seconds: float = 5.0  # how long ends are delivered at the end; the rest is on disk


class ContainerWork:
    """Run containers until it is drained."""

    def __init__(self, host: Host, state: StateFolder, rules: WorkRules) -> None:
        self._host = host
        self._state = state
        self._rules = rules
        self._running: dict[asyncio.Task[None], ContainerAttempt] = {}
        self._delivering: dict[asyncio.Task[None], str] = {}
        self._draining = asyncio.Event()
        self._hurried = asyncio.Event()
        self._changed = asyncio.Event()

    def drain(self) -> None:
        """Take no more jobs; a second call stops the containers that still run."""
        if self._draining.is_set():
            self._hurried.set()
        self._draining.set()
        self._changed.set()

    def active_jobs(self) -> list[str]:
        """Name the jobs that this host has, also those whose end is not delivered."""
        running = {attempt.order.job_id for attempt in self._running.values()}
        return sorted(running | set(self._delivering.values()))

    def facts(self) -> dict[str, Any]:
        """Say of the work what a heartbeat tells."""
        return {
            "slots": self._rules.slots,
            "running": len(self._running),
            "undelivered": len(self._delivering),
            "draining": self._draining.is_set(),
        }

    async def run(self) -> None:
        """Bring earlier attempts to an end, then take jobs until drained, and wait for them."""
        await self._unless_drained(self._recover())
        backoff, now = Backoff(), asyncio.get_running_loop().time
        while await self._wait_for_slot():
            try:
                asked = now()
                payload = await self._next_job()
                if payload is not None:
                    await self._begin(payload)
                elif now() - asked < QUICK_SECONDS:  # it does not wait: it drains, or is older
                    await self._unless_drained(backoff.wait())
                    continue
                backoff.reset()
            except AdeError as error:
                log.warning("cannot ask for a job", reason=error.detail)
                await self._unless_drained(backoff.wait())
            except (ContainerError, OSError) as error:
                log.error("cannot take a job", reason=str(error))
                await self._unless_drained(backoff.wait())
        await self._end()

    async def _recover(self) -> None:
        backoff = Backoff(most_seconds=10)
        while True:
            try:
                left = await recover(self._host, self._state)
                break
            except ContainerEngineAway as away:
                log.warning("the container engine is away", reason=str(away))
                await backoff.wait()
        for order, folder in left:
            self._deliver(order, folder, None)

    async def _wait_for_slot(self) -> bool:
        """Wait until a job may be taken; False once draining."""
        while not self._draining.is_set():
            if len(self._running) < self._rules.slots and len(self._delivering) < UNDELIVERED_MAX:
                return True
            self._changed.clear()
            await self._changed.wait()
        return False

    async def _next_job(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = await self._unless_drained(self._host.calls.next_job())
        return found

    async def _unless_drained(self, call: Any) -> Any:
        """Wait for a call; None if draining begins first."""
        calling = asyncio.ensure_future(call)
        draining = asyncio.ensure_future(self._draining.wait())
        try:
            await asyncio.wait({calling, draining}, return_when=asyncio.FIRST_COMPLETED)
            return calling.result() if calling.done() else None
        finally:
            draining.cancel()
            if not calling.done():
                calling.cancel()
                with contextlib.suppress(asyncio.CancelledError, AdeError):
                    await calling

    async def _begin(self, payload: Mapping[str, Any]) -> None:
        """Keep an order, and run it; one that cannot be read has failed."""
        job_id, number, token = identity_of(payload)
        folder = await asyncio.to_thread(self._state.begin, job_id, number, payload)
        try:
            attempt = ContainerAttempt(self._host, read_order(payload), folder)
        except ContainerError as refused:
            end = {
                "job_id": job_id,
                "attempt_number": number,
                "attempt_token": token,
                "status": AgentStatus.FAILED.value,
                "error": refused.message,
                "details": {"code": refused.code},
            }
            await asyncio.to_thread(folder.write, END, end)
            self._start_delivery(job_id, deliver_end(self._host.calls, folder))
            return
        earlier = [task for task, one in self._running.items() if one.order.job_id == job_id]
        for one in earlier:
            self._running[one].stop("over")
        task = asyncio.create_task(self._run(attempt, earlier), name=f"container {job_id}")
        self._running[task] = attempt
        task.add_done_callback(self._forget)

    async def _run(self, attempt: ContainerAttempt, earlier: list[asyncio.Task[None]]) -> None:
        """Run an attempt, after earlier ones of its job on this host have ended."""
        if earlier:
            await asyncio.wait(earlier)
        try:
            wanted = await attempt.run()
        except Exception:
            # Its folder stays, and is brought to an end at the next start.
            log.exception("an attempt broke off", job=attempt.order.job_id)
            await attempt.remove_container()
            return
        if wanted:
            self._deliver(attempt.order, attempt.folder, attempt.delivery)

    def _deliver(
        self, order: Order, folder: AttemptFolder, output: asyncio.Task[bool] | None
    ) -> None:
        """Deliver the output to its end, and then the end."""

        async def deliver() -> None:
            delivery = output
            if delivery is None and folder.output.size_bytes:
                sink = self._host.sink_of(order)
                delivery = asyncio.create_task(OutputDelivery(folder.output, sink).run())
            if delivery is not None:
                try:
                    await delivery
                except asyncio.CancelledError:
                    delivery.cancel()
                    raise
                except Exception:
                    log.exception("output is lost", job=order.job_id)
            await deliver_end(self._host.calls, folder)

        self._start_delivery(order.job_id, deliver())

    def _start_delivery(self, job_id: str, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name=f"delivery {job_id}")
        self._delivering[task] = job_id
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._delivering.pop(task, None)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the agent broke off", task=task.get_name(), exc_info=error)

    async def _end(self) -> None:
        """Wait for the containers, stop those that take too long, and deliver what can be."""
        hurried = asyncio.ensure_future(self._hurried.wait())
        ended = asyncio.ensure_future(self._all_ended())
        waits: set[asyncio.Future[Any]] = {hurried, ended}
        await asyncio.wait(
            waits, timeout=self._rules.drain_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for attempt in self._running.values():
            attempt.stop("shut_down")
        await ended
        hurried.cancel()
        if self._delivering:
            await asyncio.wait(self._delivering, timeout=self._rules.deliver_seconds)
        for task in list(self._delivering):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _all_ended(self) -> None:
        while self._running:
            await asyncio.wait(self._running)
            await asyncio.sleep(0)  # for the callbacks that forget them
