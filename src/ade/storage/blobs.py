"""A folder of files that are named by what is in them, alone or as a cache of object storage.

A blob is written to a temporary file while its digest is made, brought to disk, and renamed to its
name: it is there whole or not at all, and never changes. The same bytes twice are one file.

The rule about time. A caller that writes a blob has an hour to record somewhere that it is needed;
what nothing refers to after that is collected. Writing the same bytes again begins the hour anew,
also while they are being collected: a blob is first moved aside and, if it has become young by
then, moved back.

With object storage (`ade.storage.remote_blobs`) the folder is a cache. Bytes are sent before they
get their name here, so a blob that was kept is in the object store. A blob that is requested and is
not here is fetched, and gets its name only if its digest is right. The date of a file is then when
it was last used. Over the size limit, the files that were unused longest are deleted, but none that
was used within ten minutes: a caller may just have received its path. Open files and links outlive
that anyway.
"""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeVar

import structlog

from ade.domain.errors import NotFound, Unavailable
from ade.domain.units import MIB
from ade.storage.blob_keys import ALGORITHM, Blob, digest_at, key_of
from ade.storage.blob_writer import BlobWriter
from ade.storage.remote_blobs import Damaged, RemoteBlobs, damaged

UNFINISHED = "unfinished"
YOUNG_SECONDS = 3600.0
ABANDONED_SECONDS = 24 * 3600.0
JUST_USED_SECONDS = 600.0
ANY_BYTES = 1 << 62  # what was kept was not too large when it was kept
CACHE_BYTES_MAX = 10 * 1024 * MIB
AT_ONCE = 8
PIECE_BYTES = MIB
# Between two collections the cache is looked through when it may have grown by this share.
GROWTH_SHARE = 10
GONE = "The bytes of this file are not in the storage any more."
Item = TypeVar("Item")
Result = TypeVar("Result")
log = structlog.get_logger()


class Blobs:
    """Keep bytes by digest below one folder, and in object storage if there is one.

    All of this waits for disks or for the network: call it in a thread.
    """

    def __init__(
        self, root: Path, remote: RemoteBlobs | None = None, cache_bytes_max: int = CACHE_BYTES_MAX
    ) -> None:
        self._root = root
        self.remote = remote
        self._cache_bytes_max = cache_bytes_max
        self._grown_bytes = 0
        self._trimming = threading.Lock()
        self._fetching: dict[str, Future[None]] = {}
        self._fetching_lock = threading.Lock()
        self._ending = threading.Event()

    def end(self) -> None:
        """Stop a collection that is under way, so that the process can end."""
        self._ending.set()

    def write(self, pieces: Iterable[bytes], bytes_max: int) -> Blob:
        """Keep bytes; more than allowed raises PayloadTooLarge and leaves nothing."""
        with self.begin(bytes_max) as writing:
            for piece in pieces:
                writing.add(piece)
            return writing.keep()

    def begin(self, bytes_max: int) -> BlobWriter:
        """Begin to write; what is not kept in the end is gone."""
        return BlobWriter(self, bytes_max)

    def path(self, digest: str) -> Path:
        """Return where a blob is on this machine, or would be; `existing` sees to it that it is."""
        return self._root / key_of(digest)

    def uri(self, digest: str) -> str:
        """Return the URI of a blob, without a path of this machine."""
        if self.remote is not None:
            return self.remote.uri(digest)
        return f"blob:{ALGORITHM}:{self.path(digest).name}"

    def open(self, digest: str) -> BinaryIO:
        """Open a blob, or raise NotFound."""
        try:
            return self.existing(digest).open("rb")
        except FileNotFoundError:  # it went out of the cache in between
            return self.existing(digest).open("rb")

    def existing(self, digest: str) -> Path:
        """Return where a blob is on this machine, fetching it first if need be, or raise NotFound.

        The path is good for ten minutes; open it, link it or copy it by then.
        """
        path = self.path(digest)
        if self.remote is None:
            if not path.exists():
                raise NotFound(GONE)
        elif not touch(path):
            self._fetch_once(self.remote, digest)
        return path

    def _fetch_once(self, remote: RemoteBlobs, digest: str) -> None:
        """Fetch a blob; concurrent callers share one download and its outcome."""
        with self._fetching_lock:
            others = self._fetching.get(digest)
            ours: Future[None] = self._fetching.setdefault(digest, Future())
        if others is not None:
            return others.result()
        try:
            self._fetch(remote, digest)
        except BaseException as error:
            ours.set_exception(error)
            raise
        else:
            ours.set_result(None)
        finally:
            del self._fetching[digest]

    def _fetch(self, remote: RemoteBlobs, digest: str) -> None:
        pieces = remote.pieces(digest)
        if pieces is None:
            raise NotFound(GONE)
        with self.begin(ANY_BYTES) as writing:
            for piece in pieces:
                writing.add(piece)
            if writing.digest != digest:
                raise damaged(remote.uri(digest))
            writing.settle()

    def has(self, digest: str) -> bool:
        """Tell whether a blob is there."""
        return self.path(digest).exists() or (self.remote is not None and self.remote.has(digest))

    def delete(self, digest: str) -> None:
        """Delete a blob; doing it twice is harmless."""
        if self.remote is not None:
            self.remote.delete(digest)
        self.path(digest).unlink(missing_ok=True)

    def read(self, digest: str) -> bytes:
        """Return the bytes of a blob that is known to be small, or raise NotFound."""
        with self.open(digest) as file:
            return file.read()

    def pieces(self, digest: str) -> Iterator[bytes]:
        """Read a blob from where it is, without caching or checking it; or raise NotFound."""
        with contextlib.suppress(FileNotFoundError):
            with self.path(digest).open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
            return
        found = self.remote.pieces(digest) if self.remote is not None else None
        if found is None:
            raise NotFound(GONE)
        yield from found

    def is_reached(self) -> bool:
        """Tell whether the object storage answers; a folder always does."""
        try:
            if self.remote is not None:
                self.remote.reach()
        except Unavailable:
            return False
        return True

    def digests(self) -> Iterator[str]:
        """List every blob."""
        if self.remote is not None:
            return (found.digest for found in self.remote.blobs())
        return self._here()

    def _here(self) -> Iterator[str]:
        for path in (self._root / ALGORITHM).glob("??/*"):
            if digest := digest_at(path.relative_to(self._root).as_posix()):
                yield digest

    def concurrently(self, call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Call something for each item; with object storage some at once, else one by one."""
        if self.remote is None:
            return [call(item) for item in items]
        done: list[Result] = []
        going: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ade-blobs") as pool:
            for item in items:
                if len(going) == AT_ONCE:
                    done.append(going.popleft().result())
                going.append(pool.submit(call, item))
            done.extend(one.result() for one in going)
        return done

    # --- collecting -----------------------------------------------------------------------------

    def collect(self, in_use: Collection[str], now: float) -> int:
        """Delete the blobs that are not in use and not young; return how many they were.

        `in_use` must have been found out before this is called, and not the other way round.
        """
        young = now - YOUNG_SECONDS
        gone = sum(self._remove(digest, young) for digest in self._here() if digest not in in_use)
        for left in self.unfinished_folder().iterdir():
            with contextlib.suppress(FileNotFoundError):
                if left.stat().st_mtime < now - ABANDONED_SECONDS:
                    left.unlink()
        if self.remote is not None:
            gone = self._collect_stored(self.remote, in_use, now)
            self._trim(self.remote, now)
        return gone

    def _collect_stored(self, remote: RemoteBlobs, in_use: Collection[str], now: float) -> int:
        """Collect in the object storage, and send what is needed, is here and is not there.

        That was kept before there was such a storage, or the storage has lost it.
        """
        if not remote.is_ours():
            log.error("this database's mark is gone from the blob storage; nothing is deleted")
            return 0
        missing = {digest for digest in self._here() if digest in in_use}

        def unused() -> Iterator[str]:
            for found in remote.blobs():
                if self._ending.is_set():
                    missing.clear()
                    return
                missing.discard(found.digest)
                if found.digest not in in_use and remote.is_old(found, now):
                    yield found.digest

        gone = sum(self.concurrently(lambda digest: remote.delete_if_old(digest, now), unused()))
        sent = sum(self.concurrently(lambda digest: self._send(remote, digest), sorted(missing)))
        if sent:
            log.info("sent to the blob storage", blobs=sent)
        return gone

    def _send(self, remote: RemoteBlobs, digest: str) -> bool:
        path = self.path(digest)
        with contextlib.suppress(FileNotFoundError, Damaged):  # the latter is logged
            if self._ending.is_set():
                return False
            remote.keep(Blob(digest, path.stat().st_size), path)
            return True
        return False

    def _trim(self, remote: RemoteBlobs, now: float) -> None:
        """Make the cache as small as it may be; what the storage does not have stays."""
        with self._trimming:
            self._grown_bytes = 0
            found = []
            for digest in self._here():
                with contextlib.suppress(FileNotFoundError):
                    facts = self.path(digest).stat()
                    found.append((facts.st_mtime, facts.st_size, digest))
            over_bytes = sum(size for _, size, _ in found) - self._cache_bytes_max
            for used_at, size, digest in sorted(found):
                if over_bytes <= 0 or used_at >= now - JUST_USED_SECONDS:
                    break
                if remote.has(digest) and self._remove(digest, now - JUST_USED_SECONDS):
                    over_bytes -= size

    def grew(self, size_bytes: int) -> None:
        """Look after the size of the cache when something was added to it."""
        self._grown_bytes += size_bytes
        if self.remote is None or self._grown_bytes < self._cache_bytes_max // GROWTH_SHARE:
            return
        if not self._trimming.locked():
            try:
                now = time.time()  # noqa: TID251 - compared with the dates of files
                self._trim(self.remote, now)
            except Unavailable:
                log.warning("the cache of blobs may be too large: the storage is away")

    def _remove(self, digest: str, before: float) -> bool:
        """Delete a file unless its date is later, or becomes so meanwhile."""
        place = self.path(digest)
        aside = self.unfinished_folder() / f"{place.name}.collected"
        with contextlib.suppress(FileNotFoundError):
            if place.stat().st_mtime >= before:
                return False
            place.rename(aside)
            if aside.stat().st_mtime < before:
                aside.unlink()
                return True
            with contextlib.suppress(FileExistsError):  # or it was written anew meanwhile
                os.link(aside, place)
            aside.unlink()
        return False

    def unfinished_folder(self) -> Path:
        """Return the folder of temporary files, on the same disk as the blobs."""
        folder = self._root / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def touch(path: Path) -> bool:
    """Say that a file is used just now; False if there is none."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
