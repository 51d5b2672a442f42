"""Write one blob: a temporary file that gets its name at the end, or is deleted."""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from ade.domain.errors import PayloadTooLarge, StorageFull
from ade.domain.units import KIB
from ade.storage.blob_keys import ALGORITHM, Blob
from ade.storage.remote_blobs import RemoteBlobs

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
READ_ONLY = 0o400


class BlobFolder(Protocol):
    """Hold blobs under their names, in a folder of this machine."""

    remote: RemoteBlobs | None

    def path(self, digest: str) -> Path:
        """Return where a blob is, or would be."""
        ...

    def unfinished_folder(self) -> Path:
        """Return the folder of temporary files, on the same disk as the blobs."""
        ...

    def grew(self, size_bytes: int) -> None:
        """Note that a blob was added."""
        ...


class BlobWriter:
    """Write one blob: to a temporary file first, which becomes the blob, or is deleted."""

    def __init__(self, folder: BlobFolder, bytes_max: int) -> None:
        self._folder = folder
        self.bytes_max = bytes_max
        self._digest = hashlib.new(ALGORITHM)
        self.size_bytes = 0
        with _room():
            descriptor, name = tempfile.mkstemp(dir=folder.unfinished_folder())
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()
        self._path.unlink(missing_ok=True)

    @property
    def digest(self) -> str:
        """Name what was written so far."""
        return f"{ALGORITHM}:{self._digest.hexdigest()}"

    def add(self, piece: bytes) -> None:
        """Write a piece."""
        self.size_bytes += len(piece)
        if self.size_bytes > self.bytes_max:
            raise PayloadTooLarge(f"A file may have at most {self.bytes_max // KIB} KiB here.")
        self._digest.update(piece)
        with _room():
            self._file.write(piece)

    def so_far(self) -> BinaryIO:
        """Open what was written, to look at it before it is kept, or instead."""
        with _room():
            self._file.flush()
        return self._path.open("rb")

    def keep(self) -> Blob:
        """Bring the bytes to where they stay, under their name."""
        blob = Blob(self.digest, self.size_bytes)
        if self._folder.remote is not None:
            with _room():
                self._file.flush()
            self._folder.remote.keep(blob, self._path)
        self.settle()
        return blob

    def settle(self) -> None:
        """Bring the bytes to disk under their name."""
        place = self._folder.path(self.digest)
        with _room():
            try:
                os.utime(place)  # it is there already, and is young again
            except FileNotFoundError:
                self._move_to(place)
                self._folder.grew(self.size_bytes)
            # Also for a blob that was there: its writer may not have synced the folder yet.
            sync_folder(place.parent)

    def _move_to(self, place: Path) -> None:
        self._file.flush()
        os.fchmod(self._file.fileno(), READ_ONLY)
        os.fsync(self._file.fileno())
        if not place.parent.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(place.parent.parent)
        self._path.replace(place)


@contextlib.contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise StorageFull("The disk is full; nothing was kept.") from None
        raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
