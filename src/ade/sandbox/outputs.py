"""Collect files from a job's folder without trusting anything in it.

The folder may hold links, pipes, sparse files and misleading names. A file is opened below the
folder's descriptor without following a link or crossing a mount. It must be a regular file with one
name, and is copied up to a limit while its digest is computed. What does not fit is listed as
skipped.
"""

import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade.domain.outcome import Category, JobError, OutputFile
from ade.sandbox.child_messages import ChildMessages
from ade.sandbox.exit_status import limit_error
from ade.sandbox.layers import linux

CHUNK_BYTES = 1 << 20
ENTRIES_MAX = 10_000
NAME_CHARS_MAX = 255
DEPTH_MAX = 8
KIND_CHARS_MAX = 40
LOGS_MAX = 20
ARTIFACTS = "artifacts"


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """Hold one file that was collected."""

    name: str
    path: Path
    size_bytes: int
    digest: str


@dataclass(slots=True)
class CollectedFiles:
    """Hold the files that were collected, and why others were skipped."""

    files: list[CollectedFile] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    total_bytes: int = 0
    limit_exceeded: str | None = None  # the first limit for which a file was skipped

    def skip_over_limit(self, name: str, why: str) -> None:
        """Skip a file because a limit is reached."""
        self.skipped.append((name, why))
        self.limit_exceeded = self.limit_exceeded or why


def collect(
    folder: int, below: str, target: Path, *, files_max: int, bytes_max: int
) -> CollectedFiles:
    """Copy the regular files below a folder of the job into `target`."""
    collected = CollectedFiles()
    for name in _names(folder, below, collected):
        if len(collected.files) >= files_max:
            collected.skip_over_limit(name, f"there are more than {files_max} artifacts")
            break
        try:
            _take(folder, f"{below}/{name}" if below else name, name, target, bytes_max, collected)
        except OSError as error:
            collected.skipped.append((name, _reason(error)))
    return collected


def collect_named(
    folder: int, wanted: Mapping[str, str], target: Path, *, bytes_max: int
) -> CollectedFiles:
    """Copy the files that the spec names as outputs (path: name) into `target`."""
    collected = CollectedFiles()
    for path, name in wanted.items():
        try:
            _take(folder, path, name, target, bytes_max, collected)
        except FileNotFoundError:
            continue  # the job ended before it wrote the file
        except OSError as error:
            collected.skipped.append((name, _reason(error)))
    return collected


def _names(folder: int, below: str, collected: CollectedFiles) -> list[str]:
    """List the names of files breadth first, each folder in alphabetical order."""
    names: list[str] = []
    folders = [""]
    seen = 0
    while folders:
        inside = folders.pop(0)
        try:
            path = "/".join(part for part in (below, inside) if part) or "."
            opened = linux.open_beneath(folder, path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            with os.scandir(opened) as listed:
                some = itertools.islice(listed, ENTRIES_MAX - seen + 1)
                entries = sorted(some, key=lambda entry: entry.name)
            for entry in entries:
                seen += 1
                name = f"{inside}/{entry.name}" if inside else entry.name
                if seen > ENTRIES_MAX:
                    collected.skip_over_limit(name, f"there are more than {ENTRIES_MAX} entries")
                    return names
                if not _is_allowed(name):
                    collected.skipped.append(
                        (ascii(name)[:NAME_CHARS_MAX], "its name is not allowed")
                    )
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    names.append(name)
        finally:
            os.close(opened)
    return names


def _is_allowed(name: str) -> bool:
    return (
        len(name) <= NAME_CHARS_MAX
        and name.isprintable()
        and "\\" not in name
        and name.count("/") < DEPTH_MAX
    )


def _take(
    folder: int, path: str, name: str, target: Path, bytes_max: int, collected: CollectedFiles
) -> None:
    # Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
    source = linux.open_beneath(folder, path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        facts = os.fstat(source)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            collected.skipped.append((name, "it is not an ordinary file with one name"))
            return
        if collected.total_bytes + facts.st_size > bytes_max:
            collected.skip_over_limit(name, "there are too many bytes of artifacts")
            return
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digest, size = _copy(source, place, bytes_max - collected.total_bytes)
    finally:
        os.close(source)
    collected.total_bytes += size
    collected.files.append(CollectedFile(name, place, size, f"sha256:{digest}"))


def _copy(source: int, place: Path, bytes_max: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(place, flags, 0o600), "wb") as file:
        while size < bytes_max and (piece := os.read(source, min(CHUNK_BYTES, bytes_max - size))):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
    return digest.hexdigest(), size


def _reason(error: OSError) -> str:
    return "it is a link" if error.errno == errno.ELOOP else (error.strerror or "it cannot be read")


# --- what is reported about them ----------------------------------------------------------------


def output_files(collected: CollectedFiles, messages: ChildMessages) -> tuple[OutputFile, ...]:
    """Return the collected files, each with the job's description of it, as far as it is valid.

    Files that the job described come first, in the order in which it described them.
    """
    order = {name: place for place, name in enumerate(messages.declared)}
    return tuple(
        OutputFile(
            file.name,
            file.path,
            file.size_bytes,
            file.digest,
            _kind(messages.declared.get(file.name, {}).get("kind")),
            _metadata(messages.declared.get(file.name, {}).get("metadata")),
        )
        for file in sorted(collected.files, key=lambda file: order.get(file.name, len(order)))
    )


def missing_error(wanted: Mapping[str, str], kept: CollectedFiles) -> JobError | None:
    """Return an error if the job did not write all outputs that the spec names."""
    names = {file.name for file in kept.files}
    missing = [name for name in wanted.values() if name not in names]
    if not missing:
        return None
    text = f"The job ended without writing its outputs: {', '.join(missing)}."
    return JobError(Category.USER_CODE_ERROR, "BAD_RESULT", text)


def artifact_error(collected: CollectedFiles) -> JobError | None:
    """Return an error if artifacts were skipped for a limit: such a job must not succeed."""
    if collected.limit_exceeded is None:
        return None
    text = f"Not all files in artifacts/ could be kept: {collected.limit_exceeded}."
    return limit_error("ARTIFACT_LIMIT", text, kept=len(collected.files))


def logs_of(collected: CollectedFiles) -> list[dict[str, Any]]:
    """Return a warning for each file that was skipped."""
    return [
        {"level": "warning", "message": f"{name} was not kept: {why}."}
        for name, why in collected.skipped[:LOGS_MAX]
    ]


def _kind(value: Any) -> str | None:
    is_valid = isinstance(value, str) and 0 < len(value) <= KIND_CHARS_MAX and value.isidentifier()
    return value if is_valid else None


def _metadata(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
