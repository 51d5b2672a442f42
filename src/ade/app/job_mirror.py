"""Keep the files of the shared folder in step with the database, of which they are copies.

The model. A server writes the files of a job when it has changed: `status.json`, `job_info.json`,
its entry in `queue/`, and `job_track.json`. Every second, and at each notification, it looks at the
newest jobs and at those that workers hold. Every minute it walks over all jobs, which also writes
what somebody deleted. Several servers may share the folder: they write the same.

    failure                                what happens
    -------------------------------------  --------------------------------------------------------
    the server was down                    the walk at its start writes what has changed since
    a file or the whole folder is deleted  the walk writes it again
    the folder cannot be written           logged once; the jobs go on, and it is tried again
    the disk is full                       the same: what was not written is written later
    one job's folder holds a link instead  logged; the other jobs are written
    of a file, or belongs to another user
    a server that is slow writes what      its next look finds the newer version and writes that
    another one has overtaken
    a job is deleted                       its files are deleted; if the server was down then, or
                                           may not delete them, they stay until somebody does
    more jobs than `JOBS_MAX`              the files of the newest are kept in step, the others stay
                                           as they are
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

import structlog

from ade.app.agent_views import ShownJob, job_info_body, queue_entry, shown_job, status_body
from ade.domain.errors import AdeError, UnsafePath
from ade.domain.events import work_topic
from ade.domain.job import AGENT_POOL
from ade.kernel import Kernel
from ade.storage.shared_folder import SharedFolder
from ade.store.port import Reading
from ade.store.rows import AgentJob, AgentJobVersion, HeldJob, JobRef

JOBS_MAX = 10_000
PAGE = 100
WALK_PAGE = 500
# Jobs whose notifications are listened to; the others are looked at every second.
WATCHED_MAX = 1000
LOOK_SECONDS = 1.0
IDLE_SECONDS = 5.0  # while no job waits or runs
WALK_SECONDS = 60.0
REGISTRY_SECONDS = 2.0
REGISTRY_SHARE = 0.02
# Notifications that come within this time are answered together.
GATHER_SECONDS = 0.05
# A request waits for its files this long; they come later where the disk is slow.
WAIT_SECONDS = 2.0
log = structlog.get_logger()


class JobMirror:
    """Write the files of the shared folder."""

    def __init__(self, kernel: Kernel, folder: SharedFolder) -> None:
        self._kernel = kernel
        self.folder = folder
        self._now = kernel.monotonic
        self._written: dict[str, AgentJobVersion] = {}
        self._registry: dict[str, dict[str, Any]] = {}
        self._waiting: set[str] = set()
        self._is_registry_written = False
        self._registry_due_at = 0.0
        self._walked_at: float | None = None
        # Why the files are behind; None while they are not.
        self.trouble: str | None = None
        self._held: dict[str, HeldJob] = {}
        self._one_at_a_time = asyncio.Lock()

    def walk_soon(self) -> None:
        """Have the next step of `run` compare everything."""
        self._walked_at = None

    async def run(self) -> None:
        """Keep the files in step until cancelled."""
        while True:
            live = self._live()
            with self._kernel.subscribe(work_topic(AGENT_POOL), *live) as changes:
                try:
                    await (self.walk() if self._is_walk_due() else self.look())
                    self.trouble = None
                except Exception as error:
                    self._report_trouble(error)
                if self._live() == live:  # else some are not listened to yet
                    await changes.wait(LOOK_SECONDS if live else IDLE_SECONDS)
                await asyncio.sleep(GATHER_SECONDS)

    def _live(self) -> list[str]:
        """Name the newest jobs that had not ended."""
        live = [id_ for id_, version in self._written.items() if version.finished_at is None]
        return sorted(live)[-WATCHED_MAX:]

    def _is_walk_due(self) -> bool:
        return self._walked_at is None or self._now() - self._walked_at >= WALK_SECONDS

    def _report_trouble(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        known, self.trouble = self.trouble, reason
        if known is None:
            log.warning("the shared folder is behind", path=str(self.folder.root), reason=reason)

    async def look(self) -> None:
        """Write what has changed among the newest jobs, and among those that workers hold."""
        async with self._one_at_a_time:
            newest = await self._kernel.read(self._newest)
            held = await self._kernel.read(_held)
            names = held.keys() | self._held.keys()
            moved = {name for name in names if held.get(name) != self._held.get(name)}
            await self._write_jobs(self._changed(newest))
            await self._write_jobs(moved, unless_written=True)
            self._held = held
            await self._write_registry()

    def _newest(self, reading: Reading) -> list[AgentJobVersion]:
        """Read the newest jobs, back to one whose files are known to be right."""
        found: list[AgentJobVersion] = []
        while len(found) < JOBS_MAX:
            page = reading.agent_jobs.versions(found[-1].job_id if found else None, PAGE)
            found += page
            if len(page) < PAGE or self._written.get(page[-1].job_id) == page[-1]:
                break
        return found

    async def walk(self) -> None:
        """Write what has changed or is missing, and delete the files of jobs that are gone."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self.folder.restore)
            versions = await self._kernel.read(_all_versions)
            known = {version.job_id for version in versions}
            missing = await asyncio.to_thread(self.folder.jobs_without_status, known)
            await self._write_jobs(self._changed(versions) | missing)
            if len(versions) < JOBS_MAX:
                await self._forget_deleted(self._written.keys() - known)
            await self._clean_queue()
            self._is_registry_written &= await asyncio.to_thread(self.folder.has_registry)
            self._registry_due_at = 0.0
            await self._write_registry()
            self._walked_at = self._now()

    async def refresh(self, ref: JobRef) -> None:
        """Write the files of a job that a request has changed; trouble is for `run` to report."""
        with contextlib.suppress(AdeError, OSError, TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await self._write_jobs({ref.id})

    async def delete(self, job_id: str) -> None:
        """Delete the files of a job that is gone; trouble leaves them behind."""
        with contextlib.suppress(AdeError, OSError, TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await self._forget(job_id)

    async def clean_queue(self) -> list[str]:
        """Remove the entries of the queue that stand for no waiting job, and return which."""
        async with self._one_at_a_time:
            return await self._clean_queue()

    async def _forget_deleted(self, job_ids: Collection[str]) -> None:
        for job_id in job_ids:
            # It may be newer than what was read before.
            if await self._kernel.read(partial(_shown, job_id=job_id)) is None:
                await self._forget(job_id)

    async def _forget(self, job_id: str) -> None:
        try:
            await asyncio.to_thread(self.folder.delete_job, job_id)
        except (AdeError, OSError) as error:  # such as files of another user that a container left
            reason = error.detail if isinstance(error, AdeError) else error.strerror
            log.warning("files of a deleted job were left", job_id=job_id, reason=reason)
        self._written.pop(job_id, None)
        self._waiting.discard(job_id)
        self._is_registry_written &= self._registry.pop(job_id, None) is None

    async def _clean_queue(self) -> list[str]:
        """Compare the queue with the database: what is in memory may be a moment old."""
        entries = await asyncio.to_thread(self.folder.queue_entries)

        def waiting(reading: Reading) -> set[str]:
            found = (_shown(reading, job_id) for job_id in entries | self._waiting)
            return {shown.found.job.id for shown in found if shown is not None and shown.waits}

        wanted = await self._kernel.read(waiting)
        await self._write_jobs(wanted - entries)
        for job_id in sorted(entries - wanted):
            await asyncio.to_thread(self.folder.remove_queue_entry, job_id)
        return sorted(entries - wanted)

    def _changed(self, versions: Iterable[AgentJobVersion]) -> set[str]:
        return {v.job_id for v in versions if self._written.get(v.job_id) != v}

    async def _write_jobs(self, job_ids: Collection[str], *, unless_written: bool = False) -> None:
        for job_id in sorted(job_ids):
            shown = await self._kernel.read(partial(_shown, job_id=job_id))
            if shown is None or (unless_written and self._written.get(job_id) == _version(shown)):
                continue
            try:
                await asyncio.to_thread(self._write, shown)
            except UnsafePath as error:  # a worker has put a link or a folder in the way
                log.warning("files of a job were not written", job_id=job_id, reason=error.detail)
            except PermissionError as error:  # a container made its job's folder that of its user
                await asyncio.to_thread(self.folder.check_writable)  # or all are behind
                reason = error.strerror
                log.warning("files of a job were not written", job_id=job_id, reason=reason)
            self._remember(shown)

    def _remember(self, shown: ShownJob) -> None:
        job = shown.found.job
        self._written[job.id] = _version(shown)
        (self._waiting.add if shown.waits else self._waiting.discard)(job.id)
        entry = {**job_info_body(shown), **status_body(shown.found)}
        if self._registry.get(job.id) != entry:
            self._registry[job.id] = entry
            self._is_registry_written = False
        while len(self._registry) > JOBS_MAX:
            oldest = min(self._registry)
            del self._registry[oldest]
            self._written.pop(oldest, None)

    def _write(self, shown: ShownJob) -> None:
        job_id, folder = shown.found.job.id, self.folder
        folder.write_job_file(job_id, "job_info.json", job_info_body(shown))
        folder.write_job_file(job_id, "status.json", status_body(shown.found))
        if shown.waits:
            folder.make_job_folders(job_id)
            folder.write_queue_entry(job_id, queue_entry(job_id, shown.pool))
        else:
            folder.remove_queue_entry(job_id)

    async def _write_registry(self) -> None:
        if self._is_registry_written or self._now() < self._registry_due_at:
            return
        began = self._now()
        newest_first = dict(sorted(self._registry.items(), reverse=True))
        self._is_registry_written = True  # what changes while it is written makes it false again
        try:
            await asyncio.to_thread(self.folder.write_registry, newest_first)
        except BaseException:
            self._is_registry_written = False
            raise
        took_seconds = self._now() - began
        # A long list is written less often, so that it takes a small part of the time only.
        pause_seconds = max(REGISTRY_SECONDS, took_seconds / REGISTRY_SHARE)
        self._registry_due_at = began + pause_seconds


def _shown(reading: Reading, job_id: str) -> ShownJob | None:
    known = reading.agent_jobs.find(job_id)
    job = None if known is None else reading.read_job(JobRef(known.workspace_id, known.job_id))
    if known is None or job is None:
        return None
    return shown_job(reading, AgentJob(job, known))


def _version(shown: ShownJob) -> AgentJobVersion:
    job, known = shown.found
    return AgentJobVersion(
        job.id, job.workspace_id, job.event_seq, known.reported_at, job.finished_at
    )


def _held(reading: Reading) -> dict[str, HeldJob]:
    return {job.id: job for job in reading.agent_jobs.held()}


def _all_versions(reading: Reading) -> list[AgentJobVersion]:
    found: list[AgentJobVersion] = []
    while len(found) < JOBS_MAX:
        page = reading.agent_jobs.versions(found[-1].job_id if found else None, WALK_PAGE)
        found += page
        if len(page) < WALK_PAGE:
            break
    return found
