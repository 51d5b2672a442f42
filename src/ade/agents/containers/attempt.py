"""One attempt: from its order to its end on disk.

The model. The server is told that the container runs *before* it is started, and the container is
started only once the server has accepted that. An attempt that the server has queued again
meanwhile is therefore never started, so no two agents run one job at the same time.

    prepare   the order is checked against the rules of the host; the image is fetched
    create    the container is made, and the agent connects to its output
    announce  the server accepts that it runs
    start     the output goes to the disk of the agent, and from there to the server
    watch     the server is asked now and then whether the job is to stop, or is over
    end       what became of it is on disk; then the container is removed

    failure                                 what happens
    --------------------------------------  ------------------------------------------------------
    the engine does not answer              it is asked again; the container goes on meanwhile
    the server does not answer              the container goes on; its end is delivered later
    the server has given up the attempt     the container is killed, and nothing is reported
    this process is killed                  `ade.agents.containers.recover`, at its next start
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog

from ade.agents.containers.attempt_folder import END, STARTED, AttemptFolder, OutputSpool
from ade.agents.containers.delivery import OutputDelivery, OutputSink
from ade.agents.containers.engine import (
    Attached,
    ContainerEngine,
    ContainerEngineAway,
    ContainerState,
    was_out_of_memory,
)
from ade.agents.containers.order import (
    AGENT_RESTARTED,
    OUT_OF_MEMORY,
    TIMED_OUT,
    ContainerError,
    Order,
)
from ade.agents.containers.rules import HostRules, check_config, create_request
from ade.agents.contract_calls import Backoff, ContractCalls
from ade.domain.errors import AdeError, InvalidTransition, NotFound, StaleAttempt, Unavailable
from ade.domain.vocabulary import AgentStatus

WATCH_SECONDS = 3.0
REPORT_SECONDS = 60.0
_LIVE = (AgentStatus.DISPATCHED, AgentStatus.RUNNING, AgentStatus.STOP_REQUESTED)
log = structlog.get_logger()
Value = TypeVar("Value")


class AttemptOver(Exception):
    """The server has given up the attempt: nothing of it is wanted any more."""


@dataclass(frozen=True, slots=True)
class Host:
    """Hold what all attempts on this host share."""

    engine: ContainerEngine
    calls: ContractCalls
    rules: HostRules
    sink_of: Callable[[Order], OutputSink]
    shared_folder: Path | None = None
    watch_seconds: float = WATCH_SECONDS


class ContainerAttempt:
    """Run one container."""

    def __init__(self, host: Host, order: Order, folder: AttemptFolder) -> None:
        self._host = host
        self.order = order
        self.folder = folder
        self.container: str | None = None
        self.delivery: asyncio.Task[bool] | None = None
        self._stop = asyncio.Event()
        self._why: str | None = None  # of the stop
        self._was_announced = False
        self._was_stopped = False  # also the engine was asked
        self._log = log.bind(job=order.job_id, attempt=order.attempt)

    def stop(self, why: str) -> None:
        """End the container: `stopped`, `timed_out`, `shut_down`, `over`; the first counts."""
        self._why = self._why or why
        self._stop.set()

    async def run(self) -> bool:
        """Run the attempt until its end is on disk; False if it is over and nothing is wanted."""
        try:
            end = await self._end()
        except AttemptOver:
            self._log.warning("the server has given up this attempt")
            await self._discard()
            return False
        except ContainerError as refused:
            self._log.warning("the container cannot be run", reason=refused.message)
            end = self._failed(refused.message, refused.code)
        self.folder.output.complete()
        await asyncio.to_thread(self.folder.write, END, end)
        await self.remove_container()
        self._log.info("the container has ended", status=end["status"], code=end.get("exit_code"))
        return True

    async def _end(self) -> dict[str, Any]:
        """Take the steps of the attempt, and return what to report of its end."""
        host, order = self._host, self.order
        await asyncio.to_thread(check_config, order, host.shared_folder)
        request = await asyncio.to_thread(create_request, order, host.rules)
        image, pull = order.inputs.image, order.inputs.pull
        fetched = self._from_engine(lambda: host.engine.ensure_image(image, pull))
        if not await self._unless_stopped(fetched):
            return self._ended(None)
        container = await self._from_engine(lambda: host.engine.create(request))
        self.container = container
        attached = await self._from_engine(lambda: host.engine.attach(container))
        try:
            if await self._announce():
                return self._ended(None)
            await asyncio.to_thread(self.folder.write, STARTED, {"container": container})
            delivery = OutputDelivery(self.folder.output, host.sink_of(order), is_new=True)
            self.delivery = asyncio.create_task(delivery.run())
            await self._from_engine(lambda: host.engine.start(container))
            self._log.info("the container has started", container=container[:12])
            return await self._watched(container, attached)
        finally:
            attached.close()

    async def _announce(self) -> bool:
        """Tell the server that the container runs; True if the job is to stop instead."""
        backoff = Backoff()
        report = self._report(AgentStatus.RUNNING)
        while True:
            if self._stop.is_set():
                return True
            try:
                said = await self._host.calls.report(report)
            except Unavailable as error:
                self._log.info("cannot announce the container yet", reason=error.detail)
                await backoff.wait()
                continue
            except AdeError as error:
                raise AttemptOver(error.detail) from None
            self._was_announced = True
            if said.get("stop_requested") is True:
                self.stop("stopped")
            return self._stop.is_set()

    async def _unless_stopped(self, call: Awaitable[None]) -> bool:
        """Wait for a call that may take long; False if the attempt is stopped before it is done."""
        calling = asyncio.ensure_future(call)
        stopped = asyncio.ensure_future(self._stop.wait())
        waits: set[asyncio.Future[Any]] = {calling, stopped}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                calling.result()
            return calling.done()
        finally:
            calling.cancel()
            stopped.cancel()

    async def _watched(self, container: str, attached: Attached) -> dict[str, Any]:
        """Wait for the end of the container, or bring it about."""
        ending = asyncio.create_task(self._until_ended(container, attached))
        watching = asyncio.create_task(self._watch())
        stopping = asyncio.create_task(self._stop_when_asked(container))
        try:
            return self._ended(await ending)
        finally:
            for task in (watching, stopping, ending):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _until_ended(self, container: str, attached: Attached) -> ContainerState | None:
        """Keep what the container writes, and return how it ended."""
        engine, output = self._host.engine, self.folder.output
        was_whole = await engine.read_output(attached, output.append)
        state = await self._from_engine(lambda: engine.state(container))
        if (
            state is not None and state.is_running
        ):  # it closed its output, or the connection was cut
            was_whole = False
            state = await self._from_engine(lambda: engine.wait(container))
        if state is not None and not was_whole:
            await self._from_engine(lambda: complete_output(engine, container, output))
        return state

    async def _watch(self) -> None:
        """Ask the server whether the job is to stop or is over, and report that it runs."""
        now = asyncio.get_running_loop().time
        began = reported = now()
        while True:
            await asyncio.sleep(self._host.watch_seconds)
            timeout_seconds = self.order.timeout_seconds
            if timeout_seconds is not None and now() - began >= timeout_seconds:
                self.stop("timed_out")
            try:
                if now() - reported >= REPORT_SECONDS:
                    await self._host.calls.report(self._report(AgentStatus.RUNNING))
                    reported = now()
                self._heed(await self._host.calls.status(self.order.job_id))
            except Unavailable:
                continue
            except (NotFound, StaleAttempt, InvalidTransition) as error:
                self._log.info("the job is not held any more", reason=error.detail)
                self.stop("over")
            except AdeError as error:
                self._log.info("the server refuses a report", reason=error.detail)

    def _heed(self, said: dict[str, Any]) -> None:
        """Do what the status of the job asks for."""
        holder = said.get("worker_id")
        if said.get("status") not in _LIVE or holder not in (None, self._host.rules.agent):
            self.stop("over")
        elif said.get("stop_requested") is True:
            self.stop("stopped")

    async def _stop_when_asked(self, container: str) -> None:
        await self._stop.wait()
        grace_seconds = 0.0 if self._why == "over" else self.order.inputs.stop_grace_seconds
        self._log.info("stopping the container", why=self._why)
        self._was_stopped = True
        await self._from_engine(lambda: self._host.engine.stop(container, grace_seconds))

    async def _from_engine(self, call: Callable[[], Awaitable[Value]]) -> Value:
        """Call the engine until it answers."""
        backoff = Backoff(most_seconds=10)
        while True:
            try:
                return await call()
            except ContainerEngineAway as away:
                self._log.warning("the container engine is away", reason=str(away))
                await backoff.wait()

    def _ended(self, state: ContainerState | None) -> dict[str, Any]:
        """Return what to report of how the container ended."""
        if self._why == "over":
            raise AttemptOver
        exit_code = None if state is None else state.exit_code
        # One that ended by itself, before the engine was asked to stop it, has just ended.
        why = self._why if self._was_stopped or state is None else None
        if why == "stopped":
            return self._report(AgentStatus.STOPPED, exit_code=exit_code)
        if state is None:
            if why == "shut_down" and not self._was_announced:
                return self._report(AgentStatus.QUEUED)
            if why == "shut_down":
                return self._failed("The agent was shut down before the start.", AGENT_RESTARTED)
            return self._failed("The container was removed while it ran.", AGENT_RESTARTED)
        if exit_code == 0 and why is None:
            return self._report(AgentStatus.FINISHED, exit_code=0)
        if why == "timed_out":
            message = f"The container ran longer than {self.order.timeout_seconds:g} s."
            return self._failed(message, TIMED_OUT, exit_code)
        if why == "shut_down":
            message = "The agent was shut down, and stopped the container."
            return self._failed(message, AGENT_RESTARTED, exit_code)
        return end_of(self._report(AgentStatus.FAILED, exit_code=exit_code), state)

    def _failed(self, message: str, code: str, exit_code: int | None = None) -> dict[str, Any]:
        return failed(self._report(AgentStatus.FAILED, exit_code=exit_code), message, code)

    def _report(self, status: AgentStatus, exit_code: int | None = None) -> dict[str, Any]:
        report: dict[str, Any] = {
            **self.order.proof(),
            "status": status.value,
            "container_name": self.order.container_name,
        }
        if self.container is not None:
            report["container_id"] = self.container
        if exit_code is not None:
            report["exit_code"] = exit_code
        return report

    async def _discard(self) -> None:
        """Remove the container, and forget the attempt."""
        self.folder.output.complete()
        if self.delivery is not None:
            self.delivery.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.delivery
            self.delivery = None
        await self.remove_container()
        await asyncio.to_thread(self.folder.delete)

    async def remove_container(self) -> None:
        """Remove the container, also if it runs."""
        if (container := self.container) is None:
            return
        try:
            await self._from_engine(lambda: self._host.engine.remove(container))
        except ContainerError as error:  # it has ended; the next start tries again
            self._log.warning("the container cannot be removed", reason=error.message)


async def complete_output(engine: ContainerEngine, container: str, output: OutputSpool) -> None:
    """Append what the engine has of the output of an ended container and the agent has not."""
    try:
        await engine.kept_output(container, output.seen_bytes, output.append)
    except ContainerError as error:
        log.warning("the end of the output is lost", container=container, reason=error.message)


def end_of(report: dict[str, Any], state: ContainerState) -> dict[str, Any]:
    """Add to the report of a container that failed why it did, as far as that is known."""
    if was_out_of_memory(state, has_limit=True, was_stopped=False):
        said = "was killed for its memory" if state.out_of_memory else "was killed, probably out of"
        message = f"The container {said}{'' if state.out_of_memory else ' memory'}."
        return failed(report, message, OUT_OF_MEMORY)
    if state.error:
        report["error"] = state.error
    return report


def failed(report: dict[str, Any], message: str, code: str) -> dict[str, Any]:
    """Return a report that the job failed, with the reason."""
    return report | {
        "status": AgentStatus.FAILED.value,
        "error": message,
        "details": {"code": code},
    }
