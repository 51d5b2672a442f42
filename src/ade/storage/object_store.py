"""What blobs ask of object storage: five verbs over keys, and one way to be away.

Whoever implements this raises StorageAway for all that goes wrong on the way or over there, within
a bounded time, and never shows half of what was put.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from ade.domain.errors import Unavailable

AWAY = "The storage of files cannot be used at the moment; try again shortly."


class StorageAway(Unavailable):
    """The object storage does not answer, or refuses.

    What a client reads names nothing of it; `reason` is for the log and for whoever starts ADE,
    and holds no credentials either.
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
