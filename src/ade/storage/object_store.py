"""What blobs need of an object store: five operations on keys, and one error.

An implementation raises StorageAway for every failure of the network or of the store, within a
bounded time, and never shows half of an object.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from ade.domain.errors import Unavailable

AWAY = "The storage of files cannot be used at the moment; try again shortly."


class StorageAway(Unavailable):
    """The object storage does not answer, or refuses.

    The message for clients does not describe the store. `reason` is for the log and for the
    operator, and holds no credentials either.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(AWAY)
        self.reason = reason


class Stored(NamedTuple):
    """Say what is known of an object; `written_at` is by the storage's clock."""

    key: str
    size_bytes: int
    written_at: float


class ObjectStore(Protocol):
    """Hold bytes by key, for every host of this installation."""

    @property
    def url(self) -> str:
        """Name the place, without credentials."""
        ...

    def put(self, key: str, pieces: Iterable[bytes], size_bytes: int) -> None:
        """Write an object, whole or not at all; what is there is replaced and young again."""
        ...

    def get(self, key: str) -> Iterator[bytes] | None:
        """Read an object piece by piece; None if there is none."""
        ...

    def head(self, key: str) -> Stored | None:
        """Look at an object; None if there is none."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; doing it twice is harmless."""
        ...

    def list(self, prefix: str) -> Iterator[Stored]:
        """List every object below a prefix, however many they are."""
        ...
