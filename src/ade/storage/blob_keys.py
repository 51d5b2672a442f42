"""How bytes are named: by their digest, in the same places in a folder and in object storage."""

import re
from typing import NamedTuple

ALGORITHM = "sha256"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Blob(NamedTuple):
    """Name some bytes."""

    digest: str
    size_bytes: int


def key_of(digest: str) -> str:
    """Return the place of a blob below whatever holds blobs."""
    if not DIGEST.fullmatch(digest):
        raise ValueError("that is not a digest")
    name = digest.partition(":")[2]
    return f"{ALGORITHM}/{name[:2]}/{name}"


def digest_at(key: str) -> str | None:
    """Return which blob has a place; None is something that others put there."""
    digest = f"{ALGORITHM}:{key.rpartition('/')[2]}"
    return digest if DIGEST.fullmatch(digest) and key_of(digest) == key else None
