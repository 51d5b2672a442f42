"""Run jobs for a server over HTTP, on a host that reaches neither its database nor its storage."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import structlog

from ade.agents.input_cache import InputCache
from ade.agents.remote_job_io import RemoteJobIO
from ade.agents.remote_kernel import RemoteKernel
from ade.agents.server_calls import TIMEOUT, ServerCalls
from ade.agents.uploads import Uploads
from ade.domain.errors import SAFE_MODE_DETAIL, Unauthenticated, Unavailable
from ade.domain.job import LOCAL_POOL
from ade.domain.units import MIB
from ade.kinds import Kinds, load_kinds
from ade.process.compose import Pilot, worker_name
from ade.process.data_folder import keep_private
from ade.process.isolation import Isolation, isolated
from ade.process.serve import on_signals
from ade.settings import Settings
from ade.store.rows import LeaseRef
from ade.worker.build_runner import BuildRunner
from ade.worker.cell_environments import CellEnvironments
from ade.worker.job_folders import remove_abandoned
from ade.worker.worker import Worker, WorkerRules

KEY_CHARS_MAX = 1000
log = structlog.get_logger()


class ServerAccess(NamedTuple):
    """Say which server a worker works for, and by which key.

    The server knows the agent by its key. An operator's key may speak for any: `name` names it.
    """

    url: str
    key: str
    name: str | None = None


def read_key(file: Path) -> str:
    """Read a key from a file of one line, or raise Unauthenticated."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        key = lines.read(KEY_CHARS_MAX).strip()
    if not key or not key.isascii() or len(key.split()) != 1:
        raise Unauthenticated(f"{file} does not hold a key: it must be one line.")
    return key


def chosen_kinds(names: list[str]) -> Kinds:
    """Return the kinds that a remote worker takes: all that workers run, or those named."""
    runnable = load_kinds().in_pool(LOCAL_POOL)
    return runnable.only(names) if names else runnable


async def work_remotely(
    settings: Settings,
    access: ServerAccess,
    ready: Callable[[str], None],
    *,
    kinds: Kinds,
    pilot: Pilot | None = None,
) -> None:
    """Run jobs of a server until SIGTERM or SIGINT, or until a pilot has to leave."""
    given = pilot or Pilot()
    name = access.name or worker_name(given.block)
    async with _client(access) as http, remote_worker(settings, http, name, kinds, given) as worker:
        on_signals(settings, worker.drain)
        ready(worker.name)
        await worker.run()


@asynccontextmanager
async def remote_worker(
    settings: Settings, http: httpx.AsyncClient, name: str, kinds: Kinds, pilot: Pilot | None = None
) -> AsyncIterator[Worker]:
    """Make a worker whose jobs come from a server; its interpreters end with the block."""
    if settings.safe_mode:
        raise Unavailable(SAFE_MODE_DETAIL)
    keep_private(settings, has_database=False)
    await asyncio.to_thread(remove_abandoned, settings.jobs_dir)
    async with isolated(settings) as isolation:
        yield await _worker(settings, http, isolation, kinds, name, pilot or Pilot())


@asynccontextmanager
async def _client(access: ServerAccess) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {access.key}"}
    if access.name is not None:
        headers["Agent-Name"] = access.name
    async with httpx.AsyncClient(
        base_url=access.url, headers=headers, timeout=TIMEOUT, follow_redirects=False
    ) as http:
        yield http


async def _worker(
    settings: Settings,
    http: httpx.AsyncClient,
    isolation: Isolation,
    kinds: Kinds,
    name: str,
    pilot: Pilot,
) -> Worker:
    calls = ServerCalls(http)
    uploads = Uploads(calls)
    kernel = RemoteKernel(http, uploads=uploads)
    try:
        await kernel.connect()
    except Unavailable as error:
        log.warning("the server does not answer; trying again", reason=error.detail)
    cache = InputCache(settings.blobs_dir, calls, settings.blob_cache_mb * MIB)
    environments = CellEnvironments(settings)

    def job_io_of(lease: LeaseRef) -> RemoteJobIO:
        return RemoteJobIO(lease, calls, cache=cache, uploads=uploads, environments=environments)

    return Worker(
        name,
        kernel=kernel,
        kinds=kinds,
        runner=isolation.runner,
        build_runner=BuildRunner(isolation.runner, settings),
        jobs_dir=settings.jobs_dir,
        job_io_of=job_io_of,
        rules=WorkerRules(
            slots=settings.max_concurrency,
            poll_seconds=settings.poll_seconds,
            drain_grace_seconds=settings.drain_grace_seconds,
            network=settings.runtime_network_access,
            keeps_folders=False,
            idle_seconds_max=pilot.idle_seconds_max,
            drain_after_seconds=pilot.drain_after_seconds,
            block=pilot.block,
        ),
    )
