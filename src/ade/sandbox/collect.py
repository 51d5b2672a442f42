"""Take files out of a job's folder without trusting anything in it.

The folder may hold links, pipes, holes and names chosen to mislead. A file is opened below the
folder's descriptor without following a link or crossing a mount, must be an ordinary file with one
name, and is copied up to a limit while its digest is made. What does not fit is named and left.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ade.sandbox.walls import linux

CHUNK_BYTES = 1 << 20
ENTRIES_MAX = 10_000
NAME_CHARS_MAX = 255
DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class Collected:
    """Hold one file that was taken."""

    name: str
    path: Path
    size_bytes: int
    digest: str


@dataclass(slots=True)
class Harvest:
    """Hold what was taken, and why the rest was not."""

    taken: list[Collected] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0
    over: str | None = None  # the limit that made something stay behind

    def leave_over(self, name: str, why: str) -> None:
        """Leave a file because a limit is reached."""
        self.left.append((name, why))
        self.over = self.over or why


def collect(folder: int, below: str, target: Path, *, files_max: int, bytes_max: int) -> Harvest:
    """Copy the ordinary files below a folder of the job's into a folder of ours."""
    harvest = Harvest()
    for name in _names(folder, below, harvest):
        if len(harvest.taken) >= files_max:
            harvest.leave_over(name, f"there are more than {files_max} artifacts")
            break
        try:
            _take(folder, f"{below}/{name}" if below else name, name, target, bytes_max, harvest)
        except OSError as error:
            harvest.left.append((name, _reason(error)))
    return harvest


def collect_named(
    folder: int, wanted: Mapping[str, str], target: Path, *, bytes_max: int
) -> Harvest:
    """Copy the files that a job was to leave, each under the name that we give it."""
    harvest = Harvest()
    for path, name in wanted.items():
        try:
            _take(folder, path, name, target, bytes_max, harvest)
        except FileNotFoundError:
            continue  # it did not come that far
        except OSError as error:
            harvest.left.append((name, _reason(error)))
    return harvest


def _names(folder: int, below: str, harvest: Harvest) -> list[str]:
    """List the names of files, shallow before deep, in the order of the alphabet."""
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
                entries = sorted(listed, key=lambda entry: entry.name)
            for entry in entries:
                seen += 1
                name = f"{inside}/{entry.name}" if inside else entry.name
                if seen > ENTRIES_MAX:
                    harvest.leave_over(name, f"there are more than {ENTRIES_MAX} entries")
                    return names
                if not _is_decent(name):
                    harvest.left.append((ascii(name)[:NAME_CHARS_MAX], "its name is not allowed"))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    names.append(name)
        finally:
            os.close(opened)
    return names


def _is_decent(name: str) -> bool:
    return (
        len(name) <= NAME_CHARS_MAX
        and name.isprintable()
        and "\\" not in name
        and name.count("/") < DEPTH_MAX
    )


def _take(
    folder: int, path: str, name: str, target: Path, bytes_max: int, harvest: Harvest
) -> None:
    # Without O_NONBLOCK the worker would wait for whoever writes to a named pipe.
    source = linux.open_beneath(folder, path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        facts = os.fstat(source)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            harvest.left.append((name, "it is not an ordinary file with one name"))
            return
        if harvest.bytes + facts.st_size > bytes_max:
            harvest.leave_over(name, "there are too many bytes of artifacts")
            return
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digest, size = _copy(source, place, bytes_max - harvest.bytes)
    finally:
        os.close(source)
    harvest.bytes += size
    harvest.taken.append(Collected(name, place, size, f"sha256:{digest}"))


def _copy(source: int, place: Path, bytes_max: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(place, flags, 0o644), "wb") as file:
        while size < bytes_max and (piece := os.read(source, min(CHUNK_BYTES, bytes_max - size))):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
    return digest.hexdigest(), size


def _reason(error: OSError) -> str:
    return "it is a link" if error.errno == 40 else (error.strerror or "it cannot be read")
