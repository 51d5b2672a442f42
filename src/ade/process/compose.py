"""Compose a process: the database session, the kernel, storage, a worker, the sweeper.

`ade serve` adds the HTTP API to them in one process; `ade worker` runs them without it. On SQLite
one process owns the database: a lock beside the file keeps a second one out.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import hashlib
import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.domain.errors import Unavailable
from ade.domain.lease import LeaseRule
from ade.domain.staleness import StalenessRule
from ade.domain.units import MIB
from ade.environments.collect import collect_for_ever as collect_environments
from ade.environments.shared import SharedEnvironments
from ade.events.event_file import EventFileExporter
from ade.kernel import Kernel
from ade.kinds import Kinds, load_kinds
from ade.process.data_folder import keep_private
from ade.process.isolation import Isolation, isolated
from ade.settings import Settings
from ade.stages.kernel_settings import KernelSettings
from ade.storage import Blobs
from ade.storage.remote_blobs import RemoteBlobs
from ade.storage.s3 import S3ObjectStore
from ade.storage.shared_folder import SharedFolder, choose_shared_folder
from ade.storage.unused_blobs import collect_for_ever
from ade.store.listener import Listener, listen
from ade.store.migrate import upgrade
from ade.store.session import Session
from ade.telemetry import metrics
from ade.worker.build_runner import BuildRunner
from ade.worker.cell_environments import CellEnvironments
from ade.worker.idle_warmup import warm_up_when_idle
from ade.worker.job_io import CatalogueJobIO
from ade.worker.sandbox_runner import SandboxRunner
from ade.worker.sweeper import Sweeper
from ade.worker.worker import Worker, WorkerRules

log = structlog.get_logger()
SECONDS_PER_DAY = 24 * 3600
STORAGE_SECRET = "blobs"
SHARED_SECRET = "shared-folder"
GARBAGE_THRESHOLDS = (50_000, 20, 100)
# Options of glibc's mallopt(3): M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD.
FREED_MEMORY = {-1: 128 << 20, -2: 16 << 20, -3: 32 << 20}
# Threads that may wait for object storage without keeping others from the disk.
NETWORK_THREADS_MAX = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """Hold what runs in this process."""

    settings: Settings
    store: Session
    kernel: Kernel
    kinds: Kinds
    catalogue: Catalogue
    blobs: Blobs
    worker: Worker | None
    isolation: Isolation | None
    sweeper: Sweeper
    shared_folder: SharedFolder | None = None
    listener: Listener | None = None


def kernel_settings(settings: Settings) -> KernelSettings:
    """Return what the kernel needs of the settings."""
    return KernelSettings(
        lease=LeaseRule(
            lease_seconds=settings.lease_seconds,
            margin_seconds=settings.lease_margin_seconds,
            renew_seconds=settings.renew_seconds,
        ),
        staleness=StalenessRule(
            claim_ttl_seconds=settings.queue_claim_ttl,
            heartbeat_ttl_seconds=settings.host_heartbeat_ttl,
            grace_seconds=settings.worker_stale_grace_seconds,
            status_ttl_seconds=settings.job_status_ttl,
        ),
        queue_size=settings.queue_size,
        workspace_queue_size=settings.workspace_queue_size,
        agent_queue_size=settings.agent_queue_size,
        safe_mode=settings.safe_mode,
        ageing_seconds=settings.priority_ageing_seconds,
        events_per_job_max=settings.events_per_job_max,
        idempotency_ttl_seconds=settings.idempotency_ttl_hours * 3600,
        retain_seconds=settings.retain_days * SECONDS_PER_DAY,
    )


@dataclass(frozen=True, slots=True)
class Pilot:
    """Say when a worker that an engine started leaves, and which order to the engine it is."""

    idle_seconds_max: float | None = None
    drain_after_seconds: float | None = None
    block: str | None = None


def worker_name(block: str | None = None) -> str:
    """Name this process so that no other has the same name, now or after a restart."""
    name = f"{socket.gethostname()[:100]}:{os.getpid()}:{secrets.token_hex(3)}"
    return f"{block}/{name}" if block else name


def is_sqlite(settings: Settings) -> bool:
    """Tell whether the database is the embedded one."""
    return settings.database_url.startswith("sqlite")


def collect_garbage_rarely() -> None:
    """Let the collector look at new objects only, and seldom.

    Jobs come and go as tuples, which hold no cycles; with Python's own thresholds a fifth of the
    time of a batch goes into looking at them again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for later allocations, where it supports that.

    A batch and its answer are megabytes that are needed again in the next moment; to give each
    page back to the system and to take a new one costs a tenth of the time of a batch.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, size_bytes in FREED_MEMORY.items():
            mallopt(option, size_bytes)


@contextmanager
def sole_owner(settings: Settings) -> Iterator[None]:
    """Keep a second process away from a SQLite database; do nothing for the others."""
    if not is_sqlite(settings):
        yield
        return
    # Beside the database, not in the data folder: two folders may name the same database.
    database = Path(settings.database_url.partition(":///")[2].partition("?")[0]).resolve()
    for folder in (Path(settings.storage_data_dir), database.parent):
        folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    with open(os.open(database.with_suffix(".lock"), flags, 0o600), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"Another ADE process uses {database}. On SQLite one process owns the database;"
                " stop it, choose another ADE_STORAGE_DATA_DIR, or use PostgreSQL."
            ) from None
        yield


async def open_blobs(settings: Settings, directory: Directory) -> Blobs:
    """Open the folder of blobs, and the object store if one is set; raise Unavailable if it fails.

    An object store belongs to one database, which is known to it by the digest of a secret that is
    kept in the database.
    """
    if settings.blob_url is None:
        return Blobs(settings.blobs_dir)
    remote = RemoteBlobs(await asyncio.to_thread(S3ObjectStore, settings.blob_url))
    secret = await directory.secret(STORAGE_SECRET)
    await asyncio.to_thread(remote.claim, hashlib.sha256(secret).hexdigest())
    return Blobs(settings.blobs_dir, remote, settings.blob_cache_mb * MIB)


async def open_shared_folder(settings: Settings, directory: Directory) -> SharedFolder:
    """Open the folder that agents share, or one in the data folder where that cannot be used.

    The default is not made here: a host has it where somebody mounted or made it.
    """
    wanted, fallback = settings.vm_shared_data, settings.shared_fallback_dir
    is_explicit = settings.origin("vm_shared_data") != "default"
    if not is_explicit and not wanted.is_dir():
        wanted = fallback
    owner = hashlib.sha256(await directory.secret(SHARED_SECRET)).hexdigest()
    choose = partial(choose_shared_folder, wanted, fallback, owner, is_explicit=is_explicit)
    return await asyncio.to_thread(choose)


@asynccontextmanager
async def running(
    settings: Settings, *, works: bool = True, pilot: Pilot | None = None
) -> AsyncIterator[Parts]:
    """Open the database and run the worker and the sweeper while inside; drain them at the end."""
    keep_private(settings)
    with sole_owner(settings):
        store = Session(settings.database_url, timeout_seconds=settings.database_timeout_seconds)
        try:
            await store.aread(lambda reading: None)  # says in one line if there is no database
            await asyncio.to_thread(upgrade, settings.database_url)
            blobs = await open_blobs(settings, Directory(store))
            if blobs.remote is not None:
                asyncio.get_running_loop().set_default_executor(
                    ThreadPoolExecutor(NETWORK_THREADS_MAX, thread_name_prefix="ade-thread")
                )
            async with AsyncExitStack() as stack:
                stack.callback(blobs.end)
                isolation = None
                # In safe mode no code is started; the API can still be read.
                if works and not settings.safe_mode:
                    isolation = await stack.enter_async_context(isolated(settings))
                at_work = _at_work(settings, store, Catalogue(store), blobs, isolation, pilot)
                shared_folder = await open_shared_folder(settings, Directory(store))
                parts = await stack.enter_async_context(at_work)
                yield replace(parts, shared_folder=shared_folder)
        finally:
            await asyncio.to_thread(store.close)


@asynccontextmanager
async def _at_work(
    settings: Settings,
    store: Session,
    catalogue: Catalogue,
    blobs: Blobs,
    isolation: Isolation | None,
    pilot: Pilot | None,
) -> AsyncIterator[Parts]:
    exporter = EventFileExporter(store, Path(settings.jobs_dir))
    store.on_group = metrics.committed
    kernel = Kernel(store, kernel_settings(settings), exporter=exporter)
    listener = listen(store, kernel.notifier.publish)
    parts = _parts(settings, store, kernel, catalogue, blobs, isolation, pilot or Pilot())
    parts = replace(parts, listener=listener)
    sweeping = asyncio.create_task(parts.sweeper.run(), name="sweeper")
    collecting = asyncio.create_task(collect_for_ever(parts.blobs, catalogue))
    working = asyncio.create_task(parts.worker.run(), name="worker") if parts.worker else None
    tidying = [asyncio.create_task(_complete_event_files(exporter))]
    if working is not None:
        working.add_done_callback(_log_if_broken)
        tidying.append(asyncio.create_task(collect_environments(catalogue.environments, settings)))
        tidying.append(asyncio.create_task(_warm_up(parts)))
    try:
        yield parts
    finally:
        if parts.worker is not None and working is not None:
            parts.worker.begin_to_drain()
            await working
        for task in (sweeping, collecting, *tidying):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if listener is not None:
            await asyncio.to_thread(listener.close)


async def _warm_up(parts: Parts) -> None:
    """Start interpreters in advance, where jobs run in a sandbox."""
    idle_seconds = parts.settings.idle_warmup_seconds
    runner = parts.isolation.runner if parts.isolation is not None else None
    if parts.worker is not None and isinstance(runner, SandboxRunner) and idle_seconds > 0:
        await warm_up_when_idle(runner.pool, parts.worker, parts.kinds, idle_seconds)


async def _complete_event_files(exporter: EventFileExporter) -> None:
    """Complete the event files that a crash left short, beside everything else."""
    try:
        await exporter.complete_files()
    except Exception as error:
        log.warning("event files were not completed", reason=type(error).__name__)


def _log_if_broken(working: asyncio.Task[None]) -> None:
    if not working.cancelled() and (error := working.exception()):
        what = working.get_name()
        log.error(f"the {what} stopped working; restart this process", exc_info=error)


def _parts(
    settings: Settings,
    store: Session,
    kernel: Kernel,
    catalogue: Catalogue,
    blobs: Blobs,
    isolation: Isolation | None,
    pilot: Pilot,
) -> Parts:
    kinds = load_kinds()
    jobs_dir = Path(settings.jobs_dir)
    worker = None
    if isolation is not None:
        name = worker_name(pilot.block)
        shared = SharedEnvironments(catalogue.environments, blobs, settings)
        job_io = CatalogueJobIO(
            catalogue,
            blobs,
            settings.workspace_storage_mb * MIB,
            kernel.store.clock,
            CellEnvironments(settings, shared),
            shared,
        )
        worker = Worker(
            name,
            kernel=kernel,
            kinds=kinds,
            runner=isolation.runner,
            build_runner=BuildRunner(isolation.runner, settings, shared),
            jobs_dir=jobs_dir,
            job_io_of=lambda lease: job_io,
            rules=WorkerRules(
                slots=settings.max_concurrency,
                poll_seconds=settings.poll_seconds,
                drain_grace_seconds=settings.drain_grace_seconds,
                network=settings.runtime_network_access,
                idle_seconds_max=pilot.idle_seconds_max,
                drain_after_seconds=pilot.drain_after_seconds,
                block=pilot.block,
            ),
        )
    return Parts(
        settings=settings,
        store=store,
        kernel=kernel,
        kinds=kinds,
        catalogue=catalogue,
        blobs=blobs,
        worker=worker,
        isolation=isolation,
        sweeper=Sweeper(
            kernel,
            jobs_dir,
            settings.sweep_seconds,
            Directory(store).user_sessions().delete_expired,
        ),
    )
