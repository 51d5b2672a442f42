"""List what the next collection of the servers would delete, and why; nothing is changed.

Servers delete by themselves, every ten minutes: jobs past their time, folders of jobs that are
gone, blobs that nothing refers to. This asks the same questions, beside servers that run. What it
lists may be needed again by the time it is collected: each collector looks once more then. Packages
that builds have installed are not looked at.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ade.domain.units import DAY_SECONDS, MICROSECONDS
from ade.storage.blobs import ABANDONED_SECONDS, YOUNG_SECONDS, Blobs
from ade.store.dialects.dialect import FIRST_ID
from ade.store.session import Session

PER_READ = 500
JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Garbage:
    """Name something that would be deleted, its size if it is a file, and why it goes."""

    what: str
    name: str
    size_bytes: int | None
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return asdict(self)


def find_garbage(
    store: Session,
    blobs: Blobs,
    jobs_dir: Path,
    retain_days: float,
    *,
    now_us: int,
    file_now: float | None = None,
) -> Iterator[Garbage]:
    """Yield what would be deleted: jobs, folders of jobs, blobs, abandoned uploads.

    `now_us` is the time of the database, `file_now` that by which files are dated.
    """
    at = time.time() if file_now is None else file_now  # noqa: TID251 - dates of files
    if retain_days:
        yield from _old_jobs(store, now_us, retain_days)
    yield from _folders_of_deleted_jobs(store, jobs_dir, at)
    yield from _unused_blobs(store, blobs, at)
    yield from _abandoned_uploads(blobs, at)


def _old_jobs(store: Session, now_us: int, retain_days: float) -> Iterator[Garbage]:
    before = now_us - int(retain_days * DAY_SECONDS * MICROSECONDS)
    for workspace_id in store.read(lambda reading: reading.workspace_ids()):
        after = FIRST_ID
        while found := store.read(
            lambda reading, ws=workspace_id, last=after: reading.old_jobs(  # type: ignore[misc]
                ws, before, last, PER_READ
            )
        ):
            for id_, finished_at in found:
                days = (now_us - finished_at) / MICROSECONDS / DAY_SECONDS
                yield Garbage(
                    "job",
                    id_,
                    None,
                    f"ended {days:.0f} days ago; ADE_RETAIN_DAYS is {retain_days:g}",
                )
            after = found[-1][0]


def _folders_of_deleted_jobs(store: Session, jobs_dir: Path, at: float) -> Iterator[Garbage]:
    folders = sorted(jobs_dir.glob("*")) if jobs_dir.exists() else []
    old = [one for one in folders if JOB_ID.fullmatch(one.name) and _age(one, at) > YOUNG_SECONDS]
    for start in range(0, len(old), PER_READ):
        some = old[start : start + PER_READ]
        ids = [folder.name for folder in some]
        known = store.read(lambda reading, ids=ids: reading.known_jobs(ids))  # type: ignore[misc]
        for folder in some:
            if folder.name not in known:
                yield Garbage("job_folder", folder.name, _size(folder), "its job is gone")


def _unused_blobs(store: Session, blobs: Blobs, at: float) -> Iterator[Garbage]:
    in_use = store.read(lambda reading: reading.usage.digests_in_use())
    for digest in sorted(set(blobs.digests()) - in_use):
        path = blobs.path(digest)
        if _age(path, at) > YOUNG_SECONDS:
            yield Garbage("blob", digest, _size(path), "nothing refers to it")


def _abandoned_uploads(blobs: Blobs, at: float) -> Iterator[Garbage]:
    for path in sorted(blobs.unfinished_folder().iterdir()):
        if _age(path, at) > ABANDONED_SECONDS:
            reason = "its upload did not end within a day"
            yield Garbage("upload", path.name, _size(path), reason)


def _age(path: Path, at: float) -> float:
    """Return how old a file is; one that has just gone is young."""
    try:
        return at - path.lstat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    """Add up the sizes of files; those that go meanwhile do not count."""
    files = path.rglob("*") if path.is_dir() else iter((path,))
    return sum(map(_size_of_file, files))


def _size_of_file(path: Path) -> int:
    try:
        return path.lstat().st_size if path.is_file() else 0
    except OSError:
        return 0
