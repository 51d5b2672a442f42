"""A folder of files that are named by what is in them.

A blob is written to a temporary file while its digest is made, brought to disk, and renamed to its
name: it is there whole or not at all, and never changes. The same bytes twice are one file.

The rule about time. Whoever writes a blob has an hour to write down somewhere that it is needed;
what nobody refers to after that is collected. Writing the same bytes again begins the hour anew,
also while they are being collected: a blob is first moved aside and, if it has become young by
then, moved back.
"""

import contextlib
import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from ade.domain.errors import NotFound, PayloadTooLarge, StorageFull

ALGORITHM = "sha256"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
UNFINISHED = "unfinished"
YOUNG_SECONDS = 3600.0
ABANDONED_SECONDS = 24 * 3600.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
KIB = 1024
READ_ONLY = 0o400


class Blob(NamedTuple):
    """Name some bytes."""

    digest: str
    size_bytes: int


class Blobs:
    """Keep bytes by digest below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, pieces: Iterable[bytes], bytes_max: int) -> Blob:
        """Keep bytes; more than allowed raises PayloadTooLarge and leaves nothing."""
        with self.begin(bytes_max) as writing:
            for piece in pieces:
                writing.add(piece)
            return writing.keep()

    def begin(self, bytes_max: int) -> "Writing":
        """Begin to write; what is not kept in the end is gone."""
        return Writing(self, bytes_max)

    def path(self, digest: str) -> Path:
        """Return where a blob is, or would be."""
        if not DIGEST.fullmatch(digest):
            raise ValueError("that is no digest")
        name = digest.partition(":")[2]
        return self._root / ALGORITHM / name[:2] / name

    def uri(self, digest: str) -> str:
        """Return how results name the place of a blob: for ADE, not for clients."""
        return f"blob:{digest}"

    def uri(self, digest: str) -> str:
        """Name a blob for whoever keeps a list of them; no path of this machine is in it."""
        return f"blob:{ALGORITHM}:{self.path(digest).name}"

    def open(self, digest: str) -> BinaryIO:
        """Open a blob, or raise NotFound."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise NotFound("The bytes of this file are not in the storage any more.") from None

    def existing(self, digest: str) -> Path:
        """Return where a blob is, or raise NotFound."""
        path = self.path(digest)
        if not path.exists():
            raise NotFound("The bytes of this file are not in the storage any more.")
        return path

    def has(self, digest: str) -> bool:
        """Tell whether a blob is there."""
        return self.path(digest).exists()

    def delete(self, digest: str) -> None:
        """Delete a blob; doing it twice is harmless."""
        self.path(digest).unlink(missing_ok=True)

    def read(self, digest: str) -> bytes:
        """Return the bytes of a blob that is known to be small, or raise NotFound."""
        with self.open(digest) as file:
            return file.read()

    def digests(self) -> Iterator[str]:
        """List every blob."""
        for path in (self._root / ALGORITHM).glob("??/*"):
            yield f"{ALGORITHM}:{path.name}"

    def collect(self, in_use: Collection[str], now: float) -> int:
        """Delete the blobs that are not in use and not young; return how many they were.

        `in_use` must have been found out before this is called, and not the other way round.
        """
        gone = sum(self._collect(digest, now) for digest in self.digests() if digest not in in_use)
        for left in self.unfinished_folder().iterdir():
            with contextlib.suppress(FileNotFoundError):
                if left.stat().st_mtime < now - ABANDONED_SECONDS:
                    left.unlink()
        return gone

    def _collect(self, digest: str, now: float) -> bool:
        place = self.path(digest)
        aside = self.unfinished_folder() / f"{place.name}.collected"
        with contextlib.suppress(FileNotFoundError):
            if place.stat().st_mtime >= now - YOUNG_SECONDS:
                return False
            place.rename(aside)
            if aside.stat().st_mtime < now - YOUNG_SECONDS:
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


class Writing:
    """Write one blob."""

    def __init__(self, blobs: Blobs, bytes_max: int) -> None:
        self._blobs = blobs
        self.bytes_max = bytes_max
        self._digest = hashlib.sha256()
        self.size_bytes = 0
        with _room():
            descriptor, name = tempfile.mkstemp(dir=blobs.unfinished_folder())
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()
        self._path.unlink(missing_ok=True)

    def add(self, piece: bytes) -> None:
        """Write a piece."""
        self.size_bytes += len(piece)
        if self.size_bytes > self.bytes_max:
            raise PayloadTooLarge(f"A file may have {self.bytes_max // KIB} KiB here.")
        self._digest.update(piece)
        with _room():
            self._file.write(piece)

    def so_far(self) -> BinaryIO:
        """Open what was written, to look at it before it is kept, or instead."""
        with _room():
            self._file.flush()
        return self._path.open("rb")

    def keep(self) -> Blob:
        """Bring the bytes to disk under their name."""
        digest = f"{ALGORITHM}:{self._digest.hexdigest()}"
        place = self._blobs.path(digest)
        with _room():
            try:
                os.utime(place)  # it is there already, and is young again
            except FileNotFoundError:
                self._move_to(place)
            # Also for what was there: whoever wrote it may not have come to this yet.
            _sync_folder(place.parent)
        return Blob(digest, self.size_bytes)

    def _move_to(self, place: Path) -> None:
        self._file.flush()
        os.fchmod(self._file.fileno(), READ_ONLY)
        os.fsync(self._file.fileno())
        if not place.parent.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            _sync_folder(place.parent.parent)
        self._path.replace(place)


@contextlib.contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise StorageFull("The disk is full; nothing was kept.") from None
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
