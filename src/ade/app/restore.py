"""Bring a backup back into an empty database, with its blobs.

Every digest is verified first, also those of the blobs. The blobs come before the database: a
restore that was interrupted has left no database, and can be run again.
"""

from dataclasses import dataclass
from pathlib import Path

from ade.app.backup import (
    BLOBS,
    Manifest,
    Told,
    digest_of,
    generations,
    read_digests,
    read_manifest,
)
from ade.domain.errors import Conflict, NotFound, Unavailable
from ade.storage.blobs import ANY_BYTES, Blobs
from ade.store import backup as database_backup
from ade.store import migrate
from ade.store.backup import FILE_OF

SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Restored:
    """Say what was brought back, or only verified."""

    generation: Path
    manifest: Manifest
    blobs_copied: int


def choose_generation(folder: Path, name: str | None = None) -> Path:
    """Find the newest generation of a backup folder, or the one of a name."""
    found = generations(folder)
    if not found:
        raise NotFound(f"{folder} holds no complete backup.")
    if name is None:
        return found[-1]
    named = [generation for generation in found if generation.name == name]
    if not named:
        listed = ", ".join(generation.name for generation in found)
        raise NotFound(f"{folder} holds no backup {name}. There is: {listed}.")
    return named[0]


def verify(generation: Path) -> Manifest:
    """Verify every digest of a generation, and that this ADE can read it; or say what is wrong."""
    manifest = read_manifest(generation)
    if FILE_OF.get(manifest.database) not in manifest.files:
        raise Unavailable(f"{generation} names no file of a database.")
    if not migrate.is_known(manifest.revision):
        raise Unavailable(
            f"{generation} was made by ADE {manifest.ade_version}, at revision"
            f" {manifest.revision} of the schema, which this version does not know."
            " Restore it with that version or a later one."
        )
    for name, digest in manifest.files.items():
        path = generation / Path(name).name
        if not path.is_file() or digest_of(path) != digest:
            raise Unavailable(f"{path} is missing or damaged: its digest is not {digest}.")
    stored = Blobs(generation.parent / BLOBS)
    wrong = [digest for digest in read_digests(generation) if not _is_right(stored, digest)]
    if wrong:
        shown = ", ".join(wrong[:SHOWN_MAX]) + (", …" if len(wrong) > SHOWN_MAX else "")
        raise Unavailable(f"{len(wrong)} blobs of the backup are missing or damaged: {shown}.")
    return manifest


def restore(
    url: str, blobs: Blobs, generation: Path, *, told: Told = lambda done, of: None
) -> Restored:
    """Verify a generation and bring it back; a database that exists is never overwritten."""
    database_backup.refuse_unless_empty(url)
    manifest = verify(generation)
    if database_backup.kind_of(url) != manifest.database:
        raise Conflict(
            f"The backup is of {manifest.database}, and ADE_DATABASE_URL names another kind of"
            " database. Restore it to its own kind, then use `ade db copy`."
        )
    stored, copied = Blobs(generation.parent / BLOBS), 0
    digests = read_digests(generation)
    for done, digest in enumerate(digests, 1):
        copied += _bring(stored, blobs, digest)
        told(done, len(digests))
    source = generation / FILE_OF[manifest.database]
    database_backup.restore_from_file(url, source)
    return Restored(generation, manifest, copied)


def _bring(stored: Blobs, blobs: Blobs, digest: str) -> bool:
    """Copy a blob unless it is there; one that is there must be right."""
    if blobs.path(digest).exists():
        if not _is_right(blobs, digest):
            raise Conflict(
                f"{blobs.path(digest)} exists and is damaged. A restore overwrites nothing:"
                " move it away."
            )
        return False
    with blobs.begin(ANY_BYTES) as writing:
        for piece in stored.pieces(digest):
            writing.add(piece)
        if writing.digest != digest:  # it was right a moment ago
            raise Unavailable(f"{stored.path(digest)} changed while it was read.")
        writing.settle()
    return True


def _is_right(blobs: Blobs, digest: str) -> bool:
    path = blobs.path(digest)
    return path.is_file() and digest_of(path) == digest
