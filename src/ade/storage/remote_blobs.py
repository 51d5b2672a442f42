"""Blobs in an object store, which all hosts of an installation share.

The key of an object is the blob's digest, laid out as in the folder. An object is written whole, by
a host that has the bytes. Everything is checked: the bytes against the digest when they are sent
and when they are fetched, and the size against what the store reports.

The rule about time is that of the folder: a writer has an hour to record that a blob is needed.
"When it was written" is the store's own date of the object. Writing the same bytes again sends them
again, which makes the object young; only an object that is younger than half an hour is left as it
is. So an object is old after two hours: the hour, the half hour, and as much for clocks that differ
(S3 rejects clients that are off by more than 15 minutes).

    writer                      collector
    is it there and fresh?      list; of what is old and unused:
    no: send it                 is it still old?
    is it there, whole?         delete it
    no: send it again

S3 has no "delete, if it is still old". Bytes that are written anew between the last two steps of
the collector, one round trip apart, are deleted. A writer that has not made its last check sends
them again; otherwise its host still has them in its folder, and sends them when it next collects.
They are lost only if that host is lost before.

An object store belongs to one database: two that collect in the same place would delete each
other's blobs. The first to start leaves its mark there, and others are rejected.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from ade.domain.errors import Unavailable
from ade.domain.units import MIB
from ade.storage.blob_keys import ALGORITHM, Blob, digest_at, key_of
from ade.storage.object_store import ObjectStore, StorageAway

FRESH_SECONDS = 1800.0
OLD_SECONDS = 7200.0
SENDINGS_MAX = 3
PIECE_BYTES = MIB
OWNER = "owner"
OWNER_BYTES_MAX = 1000
UNUSED_KEY = "check"
DAMAGED = (
    "The stored bytes of this file are damaged: their digest is not the one that they were kept"
    " under. They must be restored from a backup."
)
log = structlog.get_logger()


class Damaged(Unavailable):
    """The stored bytes are not the ones that were kept."""


def damaged(where: str) -> Damaged:
    """Say in the log which bytes are damaged, and to the client that some are."""
    log.error("damaged blob", where=where)
    return Damaged(DAMAGED)


class Kept(NamedTuple):
    """Name a blob that the storage has, and when it was written."""

    digest: str
    written_at: float


class RemoteBlobs:
    """Keep blobs in object storage."""

    def __init__(
        self,
        objects: ObjectStore,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - compared with the storage's dates
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._owner: str | None = None

    def uri(self, digest: str) -> str:
        """Name a blob as every client of the storage can find it."""
        return f"{self._objects.url}/{key_of(digest)}"

    def keep(self, blob: Blob, path: Path) -> None:
        """See to it that the storage has a blob whose bytes are in a file, and that it is young.

        What is not there after it was sent was just collected, or is being replaced by another
        writer in a storage that does not do so in one step: it is sent again.
        """
        key = key_of(blob.digest)
        if self._has_whole(blob, self._clock() - FRESH_SECONDS):
            return
        for _ in range(SENDINGS_MAX):
            self._objects.put(key, _checked(path, blob.digest), blob.size_bytes)
            if self._has_whole(blob):
                return
        log.error("the blob storage does not keep what it takes", where=self.uri(blob.digest))
        raise StorageAway("it does not return what was written to it")

    def _has_whole(self, blob: Blob, since: float = 0) -> bool:
        found = self._objects.head(key_of(blob.digest))
        return (
            found is not None and found.size_bytes == blob.size_bytes and found.written_at > since
        )

    def pieces(self, digest: str) -> Iterator[bytes] | None:
        """Read a blob; None if it is not there. What comes is not checked yet."""
        return self._objects.get(key_of(digest))

    def has(self, digest: str) -> bool:
        """Tell whether a blob is there."""
        return self._objects.head(key_of(digest)) is not None

    def delete(self, digest: str) -> None:
        """Delete a blob; doing it twice is harmless."""
        self._objects.delete(key_of(digest))

    def blobs(self) -> Iterator[Kept]:
        """List every blob."""
        for found in self._objects.list(ALGORITHM):
            if digest := digest_at(found.key):
                yield Kept(digest, found.written_at)

    def is_old(self, found: Kept, now: float) -> bool:
        """Tell whether the writer of a blob has had its time to record that it is needed."""
        return found.written_at < now - OLD_SECONDS

    def delete_if_old(self, digest: str, now: float) -> bool:
        """Delete a blob unless someone has written it in the meantime; tell whether it is gone."""
        key = key_of(digest)
        found = self._objects.head(key)
        if found is None or not self.is_old(Kept(digest, found.written_at), now):
            return False
        self._objects.delete(key)
        return True

    # --- ownership ------------------------------------------------------------------------------

    def claim(self, owner: str) -> None:
        """Take the place for a database, and find out whether all verbs are allowed there.

        Raises Unavailable, in one line for the operator.
        """
        url = self._objects.url
        try:
            next(iter(self._objects.list(ALGORITHM)), None)
            taken_by = self._mark()
            if taken_by not in (None, owner):
                raise Unavailable(
                    f"ADE_BLOB_URL={url} belongs to another ADE database, and ADE deletes"
                    " blobs that its database does not know: use another prefix, or delete"
                    f" {url}/{OWNER} if that database is gone for good."
                )
            self._objects.put(OWNER, [owner.encode()], len(owner))
            self._objects.delete(UNUSED_KEY)
            self._owner = owner
        except StorageAway as error:
            raise Unavailable(
                f"ADE_BLOB_URL={url} cannot be used: {error.reason}. The AWS_* variables give the"
                " endpoint (AWS_ENDPOINT_URL, AWS_REGION) and the credentials (AWS_ACCESS_KEY_ID,"
                " AWS_SECRET_ACCESS_KEY); ADE must read, write, list and delete there."
            ) from None

    def is_ours(self) -> bool:
        """Tell whether no other database has put its mark here since."""
        return self._owner is None or self._mark() == self._owner

    def _mark(self) -> str | None:
        pieces = self._objects.get(OWNER)
        if pieces is None:
            return None
        return b"".join(pieces)[:OWNER_BYTES_MAX].decode("ascii", "replace")

    def reach(self) -> None:
        """Ask for something small; raise StorageAway if there is no answer."""
        self._objects.head(OWNER)


def _checked(path: Path, digest: str) -> Iterator[bytes]:
    """Give a file's bytes; the last of them only if all together are what they should be."""
    seen = hashlib.new(ALGORITHM)
    with path.open("rb") as file:
        held = file.read(PIECE_BYTES)
        seen.update(held)
        while piece := file.read(PIECE_BYTES):
            seen.update(piece)
            yield held
            held = piece
    if f"{ALGORITHM}:{seen.hexdigest()}" != digest:
        raise damaged(str(path))
    yield held
