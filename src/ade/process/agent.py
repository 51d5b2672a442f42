"""Compose an agent: its key, the server, the container engine; it has no database."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import structlog

from ade.agents.agent import Agent, AgentPart
from ade.agents.agent_config import AgentConfig
from ade.agents.agent_key import KeyFile, enrol
from ade.agents.containers.attempt import Host
from ade.agents.containers.attempt_folder import StateFolder
from ade.agents.containers.delivery import HttpOutput, OutputSink, SharedOutput
from ade.agents.containers.engine import ContainerEngine, ContainerEngineAway
from ade.agents.containers.order import Order
from ade.agents.containers.rules import HostRules, gpu_count
from ade.agents.containers.work import ContainerWork, WorkRules
from ade.agents.contract_calls import Backoff, ContractCalls
from ade.agents.sandboxed_part import SandboxedPart
from ade.domain.errors import Unavailable
from ade.domain.units import MIB
from ade.process.remote_worker import chosen_kinds, remote_worker
from ade.settings import Settings
from ade.storage.attempt_logs import AttemptLogs

THREADS_KEPT = 8
ALL_KINDS = "all"
CONNECT_SECONDS = 10.0
log = structlog.get_logger()


async def run_agent(
    config: AgentConfig, ready: Callable[[str], None], settings: Settings | None = None
) -> None:
    """Run an agent until SIGTERM or SIGINT; a second one stops what still runs.

    `settings` are those of sandboxed jobs, if it takes any.
    """
    state = StateFolder(config.state_dir, config.spool_mb * MIB)
    with state.opened():
        async with AsyncExitStack() as stack:
            await _enrol(config)
            http = await stack.enter_async_context(_client(config))
            calls = ContractCalls(http, config.name, list(config.labels))
            parts, about = list[AgentPart](), dict[str, Any](labels=list(config.labels))
            if config.containers:
                parts.append(await _containers(config, state, calls, about, stack))
            if settings is not None:
                parts.append(await _sandboxed(config, settings, http, stack))
            agent = Agent(calls, parts, config.state_dir, about, config.heartbeat_seconds)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, agent.drain)
            ready(f"agent {config.name} is ready: {_what_it_runs(config, settings, about)}")
            await agent.run()


def _what_it_runs(config: AgentConfig, settings: Settings | None, about: dict[str, Any]) -> str:
    runs = [f"{config.slots} slots, {about['engine']}"] if config.containers else []
    if settings is not None:
        runs.append(f"{settings.max_concurrency} slots in the sandbox")
    return "; ".join(runs)


async def _containers(
    config: AgentConfig,
    state: StateFolder,
    calls: ContractCalls,
    about: dict[str, Any],
    stack: AsyncExitStack,
) -> ContainerWork:
    engine = ContainerEngine(config.engine, 2 * config.slots + THREADS_KEPT)
    stack.callback(engine.close)
    host = Host(
        engine,
        calls,
        host_rules(config),
        _sinks(config, calls),
        config.shared_folder,
        config.watch_seconds,
    )
    about["engine"] = await _engine_version(engine)
    about["gpu_count"] = host.rules.gpus
    return ContainerWork(host, state, WorkRules(config.slots, config.drain_seconds))


async def _sandboxed(
    config: AgentConfig,
    settings: Settings,
    http: httpx.AsyncClient,
    stack: AsyncExitStack,
) -> SandboxedPart:
    kinds = chosen_kinds([] if config.kinds == (ALL_KINDS,) else list(config.kinds))
    working = remote_worker(settings, http, config.name, kinds)
    worker = await stack.enter_async_context(working)
    return SandboxedPart(worker, kinds.names())


def host_rules(config: AgentConfig) -> HostRules:
    """Return what containers may do on this host."""
    shared = (config.shared_folder,) if config.shared_folder is not None else ()
    return HostRules(
        agent=config.name,
        folders=(*config.folders, *shared),
        memory_bytes=config.memory_mb * MIB,
        memory_bytes_max=config.memory_mb_max * MIB if config.memory_mb_max is not None else None,
        cpus=config.cpus,
        cpus_max=config.cpus_max,
        pids=config.pids,
        networks=frozenset({"none", "bridge"} if config.network else {"none"}),
        gpus=gpu_count(),
    )


def _client(config: AgentConfig) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=config.server,
        auth=KeyFile(config.key_file, config.name),
        timeout=httpx.Timeout(CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
    )


async def _enrol(config: AgentConfig) -> None:
    """Trade the code for a key, if there is one; wait for a server that is away."""
    if config.code is None:
        return
    backoff = Backoff()
    async with httpx.AsyncClient(base_url=config.server) as http:
        while True:
            try:
                await enrol(http, config.code, config.key_file)
                return
            except Unavailable as error:
                log.warning("cannot trade the code yet", reason=error.detail)
                await backoff.wait()


async def _engine_version(engine: ContainerEngine) -> str:
    """Name the engine; one that is away at the start is a mistake of the set-up."""
    try:
        return await engine.version()
    except ContainerEngineAway as away:
        raise Unavailable(f"{away} Give its address with --engine.") from None


def _sinks(config: AgentConfig, calls: ContractCalls) -> Callable[[Order], OutputSink]:
    if config.shared_folder is None:
        return lambda order: HttpOutput(calls, order.proof())
    logs = AttemptLogs(config.shared_folder)
    return lambda order: SharedOutput(logs, order.job_id, order.attempt)
