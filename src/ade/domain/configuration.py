"""What a configuration may hold, and how a set of its files is named."""

from collections.abc import Iterable
from typing import Protocol

from ade.domain.keys import digest
from ade.domain.units import MIB

FILES_MAX = 1000
DRAFT_BYTES_MAX = 32 * MIB
CONFIGURATIONS_MAX = 10_000
VERSIONS_MAX = 10_000
# What an editor sends that believes that there is no such file yet.
ABSENT = "absent"


class StoredFile(Protocol):
    """Name a file and its content."""

    @property
    def path(self) -> str:
        """Return the path below the configuration."""
        ...

    @property
    def digest(self) -> str:
        """Return the digest of the content."""
        ...


def manifest_digest(files: Iterable[StoredFile]) -> str:
    """Return the digest of a set of files: of their paths and contents."""
    return digest(sorted([file.path, file.digest] for file in files))
