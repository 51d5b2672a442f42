"""Back up a database and its blobs while servers run.

The model. A backup folder holds generations, one folder for each run, named by its time, and the
blobs of all of them, each once, under its digest:

    blobs/sha256/<xx>/<digest>
    <time>/ade.sqlite or ade.dump     the database, the state of one moment
    <time>/blobs.txt                  the digests that its rows refer to
    <time>/backup.json                what the other files are, with their digests

A generation gets its name when everything in it is on disk, so one that can be listed is complete.

The rule about blobs. A blob is written before a row names it, and may be collected once no row
does. So most are copied before the database and the rest after it. If one is gone by then, the
database is copied again, without the row that named it. What two copies in a row name and the
storage does not have is lost: the backup is made without it, and says so.
"""

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from ade.domain.errors import Conflict, NotFound, StorageFull, Unavailable
from ade.storage.blob_keys import DIGEST
from ade.storage.blobs import ANY_BYTES, Blobs
from ade.store import backup as database_backup
from ade.store.backup import FILE_OF, SPARE_BYTES, DatabaseCopy, sync_path
from ade.version import __version__

FORMAT = 1
MANIFEST, DIGESTS, BLOBS = "backup.json", "blobs.txt", "blobs"
UNFINISHED = "unfinished"
KEPT_DEFAULT = 7
COPIES_MAX = 4  # of the database, while blobs disappear
THREADS = 4
TIME_FORMAT = "%Y%m%dT%H%M%S%fZ"
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Describe one generation of a backup."""

    format: int
    ade_version: str
    made_at: str
    database: str
    revision: str
    # The digest of each file of the generation, by its name.
    files: dict[str, str]
    blobs: int
    # Blobs that rows name and the storage did not have.
    missing: list[str]


@dataclass(frozen=True, slots=True)
class BackedUp:
    """Say what a backup did."""

    folder: Path
    manifest: Manifest
    blobs_copied: int
    bytes_copied: int
    generations_deleted: int


def back_up(
    url: str,
    source: Blobs,
    folder: Path,
    *,
    keep: int = KEPT_DEFAULT,
    now: datetime | None = None,
    told: Told = lambda done, of: None,
) -> BackedUp:
    """Add a generation to a backup folder, and delete those beyond the newest few."""
    database_backup.refuse_unusable(url)
    with _alone(folder):
        copies = _Copies(source, Blobs(folder / BLOBS), told)
        copies.add(database_backup.digests_in_use(url))
        made_at = now or datetime.now(UTC)  # noqa: TID251 - only recorded
        unfinished = folder / UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        try:
            database, missing = _copy_database(url, unfinished, copies)
            manifest = _describe(unfinished, database, missing, made_at)
            target = folder / made_at.strftime(TIME_FORMAT)
            unfinished.rename(target)
            sync_path(folder)
        except OSError as error:
            raise StorageFull(f"The backup cannot be written: {error}") from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        deleted = _delete_old(folder, keep, copies.target)
    return BackedUp(target, manifest, copies.blobs, copies.size_bytes, deleted)


def generations(folder: Path) -> list[Path]:
    """List the complete generations of a backup folder, oldest first."""
    return sorted(found.parent for found in folder.glob(f"*/{MANIFEST}") if _is_time(found.parent))


def read_manifest(generation: Path) -> Manifest:
    """Read what a generation is, or raise Unavailable."""
    try:
        held = json.loads((generation / MANIFEST).read_text())
        if held.get("format") != FORMAT:
            raise Unavailable(
                f"{generation} has format {held.get('format')!r}, made by ADE"
                f" {held.get('ade_version')}. This version reads format {FORMAT} only."
            )
        return Manifest(**held)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Unavailable(f"{generation / MANIFEST} cannot be read: {error}") from None


def read_digests(generation: Path) -> list[str]:
    """Read which blobs a generation needs."""
    lines = (generation / DIGESTS).read_text().split()
    if wrong := [line for line in lines if not DIGEST.fullmatch(line)]:
        raise Unavailable(f"{generation / DIGESTS} is damaged: {wrong[0][:80]!r} is not a digest.")
    return lines


def digest_of(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


class _Copies:
    """Copy blobs from the storage into the backup, each once."""

    def __init__(self, source: Blobs, target: Blobs, told: Told) -> None:
        self._source = source
        self.target = target
        self._told = told
        self.blobs = self.size_bytes = 0

    def add(self, digests: Collection[str]) -> set[str]:
        """Copy what the backup lacks, and return what the storage does not have."""
        missing = {one for one in digests if not DIGEST.fullmatch(one)}
        named = sorted(set(digests) - missing)
        lacking = [one for one in named if not self.target.path(one).exists()]
        with ThreadPoolExecutor(THREADS, thread_name_prefix="ade-backup") as pool:
            for done, (digest, size) in enumerate(
                zip(lacking, pool.map(self._copy, lacking), strict=True), 1
            ):
                if size is None:
                    missing.add(digest)
                else:
                    self.blobs += 1
                    self.size_bytes += size
                self._told(done, len(lacking))
        return missing

    def _copy(self, digest: str) -> int | None:
        """Copy one blob and return its size; None if it is gone or its bytes are wrong."""
        with self.target.begin(ANY_BYTES) as writing:
            try:
                for piece in self._source.pieces(digest):
                    writing.add(piece)
            except NotFound:
                return None
            if writing.digest != digest:
                return None
            writing.settle()
            return writing.size_bytes


def _copy_database(url: str, folder: Path, copies: _Copies) -> tuple[DatabaseCopy, set[str]]:
    """Copy the database until all blobs of the copy are there, or are surely lost."""
    lost: set[str] = set()
    for attempt in range(COPIES_MAX):
        for name in FILE_OF.values():
            (folder / name).unlink(missing_ok=True)
        copied = database_backup.copy_to_folder(url, folder)
        missing = copies.add(copied.digests)
        if missing <= lost or attempt == COPIES_MAX - 1:
            break
        lost = missing
    return copied, missing


def _describe(
    folder: Path, database: DatabaseCopy, missing: set[str], made_at: datetime
) -> Manifest:
    """Write which blobs belong to a generation and what it consists of, and sync it."""
    needed = sorted(database.digests - missing)
    (folder / DIGESTS).write_text("".join(f"{digest}\n" for digest in needed))
    manifest = Manifest(
        format=FORMAT,
        ade_version=__version__,
        made_at=made_at.isoformat(),
        database=database.kind,
        revision=database.revision,
        files={name: digest_of(folder / name) for name in (FILE_OF[database.kind], DIGESTS)},
        blobs=len(needed),
        missing=sorted(missing),
    )
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n")
    for path in (*folder.iterdir(), folder):
        path.chmod(0o700 if path.is_dir() else 0o600)
        sync_path(path)
    return manifest


def _delete_old(folder: Path, keep: int, blobs: Blobs) -> int:
    """Delete all but the newest generations, then the blobs that none of them needs."""
    found = generations(folder)
    old, kept = found[:-keep], found[-keep:]
    for generation in old:
        (generation / MANIFEST).unlink()  # from here on it is none
        shutil.rmtree(generation)
    if old:
        needed = {digest for generation in kept for digest in read_digests(generation)}
        for digest in blobs.digests():
            if digest not in needed:
                blobs.delete(digest)
    return len(old)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder, and keep a second backup out of it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise Unavailable(f"{folder} cannot be written: {error.strerror}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Another backup writes to {folder}. Wait for its end.") from None
        if shutil.disk_usage(folder).free < SPARE_BYTES:
            raise StorageFull(f"The disk with {folder} is full.")
        yield


def _is_time(folder: Path) -> bool:
    with contextlib.suppress(ValueError):
        return bool(datetime.strptime(folder.name, TIME_FORMAT).replace(tzinfo=UTC))
    return False
