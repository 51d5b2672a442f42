"""A folder of files that are named by what is in them.

A blob is written to a temporary file while its digest is made, brought to disk, and renamed to its
name: it is there whole or not at all, and never changes. The same bytes twice are one file.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from ade.domain.errors import NotFound, PayloadTooLarge

ALGORITHM = "sha256"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
UNFINISHED = "unfinished"


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

    def open(self, digest: str) -> BinaryIO:
        """Open a blob, or raise NotFound."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise NotFound("The bytes of this file are not in the storage any more.") from None

    def has(self, digest: str) -> bool:
        """Tell whether a blob is there."""
        return self.path(digest).exists()

    def delete(self, digest: str) -> None:
        """Delete a blob; doing it twice is harmless."""
        self.path(digest).unlink(missing_ok=True)

    def digests(self) -> Iterator[tuple[str, float]]:
        """List every blob with the time at which it was last written."""
        for path in (self._root / ALGORITHM).glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                yield f"{ALGORITHM}:{path.name}", path.stat().st_mtime

    def unfinished_folder(self) -> Path:
        """Return the folder of temporary files, on the same disk as the blobs."""
        folder = self._root / UNFINISHED
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class Writing:
    """Write one blob."""

    def __init__(self, blobs: Blobs, bytes_max: int) -> None:
        self._blobs = blobs
        self._bytes_max = bytes_max
        self._digest = hashlib.sha256()
        self.size_bytes = 0
        descriptor, name = tempfile.mkstemp(dir=blobs.unfinished_folder())
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def add(self, piece: bytes) -> None:
        """Write a piece."""
        self.size_bytes += len(piece)
        if self.size_bytes > self._bytes_max:
            raise PayloadTooLarge(f"A file may have {self._bytes_max // 1024 // 1024} MiB.")
        self._digest.update(piece)
        self._file.write(piece)

    def keep(self) -> Blob:
        """Bring the bytes to disk under their name."""
        digest = f"{ALGORITHM}:{self._digest.hexdigest()}"
        place = self._blobs.path(digest)
        self._file.flush()
        os.fsync(self._file.fileno())
        place.parent.mkdir(parents=True, exist_ok=True)
        # Also when it is there already: a young file is not collected while someone begins to
        # refer to it.
        self._path.replace(place)
        _sync_folder(place.parent)
        return Blob(digest, self.size_bytes)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
