"""Bring to an end what an earlier process of this agent left: no container goes on unwatched.

what is found                             what becomes of it
----------------------------------------  ----------------------------------------------------
an end on disk                            it is delivered
a container that has ended by itself      its output is completed, and its end is reported
a container that runs                     it is stopped, and the job fails: AGENT_RESTARTED
an order without a container that ran     the job is handed back, or fails if it was announced
a container without an order              it is removed
"""

import asyncio
from typing import Any

import structlog

from ade.agents.containers.attempt import Host, complete_output, end_of, failed
from ade.agents.containers.attempt_folder import END, ORDER, STARTED, AttemptFolder, StateFolder
from ade.agents.containers.order import AGENT_RESTARTED, ContainerError, Order, read_order
from ade.agents.containers.rules import attempt_of
from ade.domain.vocabulary import AgentStatus

STOP_SECONDS_MAX = 10.0
RESTARTED = "The agent was restarted, and stopped the container."
log = structlog.get_logger()


async def recover(host: Host, state: StateFolder) -> list[tuple[Order, AttemptFolder]]:
    """End what was left, and return the attempts whose end is to be delivered.

    If the engine does not answer, ContainerEngineAway is raised, and it can be begun anew.
    """
    containers = await _containers(host)
    ends = []
    for folder in await asyncio.to_thread(state.left):
        order = await _order(folder)
        if order is None:
            await asyncio.to_thread(folder.delete)
            continue
        container = containers.pop((order.job_id, order.attempt), None)
        if not folder.has(END):
            await asyncio.to_thread(folder.write, END, await _end(host, folder, order, container))
        folder.output.complete()
        if container is not None:
            await _remove(host, container)
        ends.append((order, folder))
    for container in containers.values():
        log.warning("removing a container that no order is known for", container=container[:12])
        await _remove(host, container)
    return ends


async def _remove(host: Host, container: str) -> None:
    try:
        await host.engine.remove(container)
    except ContainerError as error:
        log.warning("a container cannot be removed", container=container, reason=error.message)


async def _containers(host: Host) -> dict[Any, str]:
    """Find the containers of this agent."""
    found = await host.engine.find_all(host.rules.agent)
    return {attempt_of(one.labels) or one.id: one.id for one in found}


async def _order(folder: AttemptFolder) -> Order | None:
    try:
        return read_order(await asyncio.to_thread(folder.read, ORDER) or {})
    except ContainerError as error:
        log.warning("an order cannot be read", attempt=folder.path.name, reason=error.message)
        return None


async def _end(
    host: Host, folder: AttemptFolder, order: Order, container: str | None
) -> dict[str, Any]:
    """Say how an attempt ended of which no end is on disk; stop its container."""
    report = {
        **order.proof(),
        "status": AgentStatus.FAILED.value,
        "container_name": order.container_name,
    }
    state = None if container is None else await host.engine.state(container)
    if container is None or state is None or not state.was_started:
        if folder.has(STARTED):
            return failed(report, "The agent was restarted before the start.", AGENT_RESTARTED)
        return report | {"status": AgentStatus.QUEUED.value}
    was_running = state.is_running
    if was_running:
        log.warning("stopping a container of an earlier process", container=container[:12])
        grace_seconds = min(order.inputs.stop_grace_seconds, STOP_SECONDS_MAX)
        await host.engine.stop(container, grace_seconds)
        state = await host.engine.wait(container) or state
    await complete_output(host.engine, container, folder.output)
    report |= {"container_id": container, "exit_code": state.exit_code}
    if was_running:
        return failed(report, RESTARTED, AGENT_RESTARTED)
    if state.exit_code == 0:
        return report | {"status": AgentStatus.FINISHED.value}
    return end_of(report, state)
