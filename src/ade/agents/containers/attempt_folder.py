"""What an agent keeps on its disk of each attempt, until the server has all of it.

The model. An attempt has a folder from the moment that its order is accepted until the server has
acknowledged its end. What decides is on disk before it is acted upon: the order before anything is
created, the end before the container is removed. So an agent that was killed knows at its next
start which attempts it had, how far their output got, and which ends were not delivered.

    <state>/agent.lock                  held by the agent that uses the folder
    <state>/attempts/<job>.<attempt>/
        order.json      what `next-job` answered; it may hold secrets, so only the agent can read it
        output          what the container wrote, in order of arrival
        started         there once the server knew that the container was to run
        end.json        how the attempt ended, as it is reported
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog

from ade.domain.errors import Unavailable
from ade.domain.ids import is_uuid
from ade.domain.units import MIB
from ade.storage.blob_writer import sync_folder

ORDER, OUTPUT, STARTED, END = "order.json", "output", "started", "end.json"
PRIVATE_FOLDER = 0o700
FREE_BYTES_MIN = 64 * MIB
CHECK_FREE_EVERY_BYTES = 8 * MIB
CUT_NOTE = b"\n[ade agent: the rest of the output is dropped: %s]\n"
log = structlog.get_logger()


class StateFolder:
    """Hold the folders of all attempts of one agent."""

    def __init__(self, root: Path, output_bytes_max: int) -> None:
        self._attempts = root / "attempts"
        self._root = root
        self._output_bytes_max = output_bytes_max

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder and keep other agents away from it, or raise Unavailable."""
        self._attempts.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        self._root.chmod(PRIVATE_FOLDER)
        with open(self._root / "agent.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unavailable(
                    f"Another agent uses {self._root}. Give each agent a state folder of its own."
                ) from None
            yield

    def begin(self, job_id: str, attempt: int, order: Mapping[str, Any]) -> "AttemptFolder":
        """Keep the order of a new attempt."""
        folder = self._folder(f"{job_id}.{attempt}")
        folder.path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        folder.write(ORDER, order)
        return folder

    def left(self) -> "list[AttemptFolder]":
        """Return the attempts that an earlier process of this agent left."""
        found = []
        for path in sorted(self._attempts.iterdir()):
            job_id, _, attempt = path.name.partition(".")
            if is_uuid(job_id) and attempt.isdigit() and path.is_dir():
                found.append(self._folder(path.name))
        return found

    def _folder(self, name: str) -> "AttemptFolder":
        return AttemptFolder(self._attempts / name, self._output_bytes_max)


class AttemptFolder:
    """Hold the files of one attempt."""

    def __init__(self, path: Path, output_bytes_max: int) -> None:
        self.path = path
        self.output = OutputSpool(path / OUTPUT, output_bytes_max)

    def write(self, name: str, content: Any) -> None:
        """Write a file, so that it is on disk, whole or not at all."""
        unfinished = self.path / f".{name}"
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self.path / name)
        sync_folder(self.path)

    def read(self, name: str) -> Any:
        """Read a file; None if it is not there or cannot be read."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return (self.path / name).exists()

    def delete(self) -> None:
        """Delete all that is known of the attempt."""
        self.output.close()
        shutil.rmtree(self.path, ignore_errors=True)


class OutputSpool:
    """Append what a container writes from one thread, and read it from others.

    What is beyond the limit, or finds no room on the disk, is dropped; a note says so once.
    """

    def __init__(self, path: Path, bytes_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._file: int | None = None
        self._lock = threading.Lock()
        self._since_check = CHECK_FREE_EVERY_BYTES
        self._notify: Callable[[], None] | None = None
        self.size_bytes = path.stat().st_size if path.exists() else 0
        self.seen_bytes = self.size_bytes  # also what was dropped
        self.is_cut = False
        self.is_complete = False

    def on_change(self, notify: Callable[[], None]) -> None:
        """Call this from the writing thread after each change."""
        self._notify = notify

    def append(self, piece: bytes) -> None:
        """Append what a container wrote."""
        with self._lock:
            self.seen_bytes += len(piece)
            if not self.is_cut:
                self._append(piece)
        if self._notify is not None:
            self._notify()

    def complete(self) -> None:
        """Say that nothing more comes."""
        with self._lock:
            self.is_complete = True
        if self._notify is not None:
            self._notify()

    def read(self, start: int, bytes_max: int) -> bytes:
        """Read from a place on."""
        with self._lock:
            descriptor, left = self._opened(), max(self.size_bytes - start, 0)
        return os.pread(descriptor, min(bytes_max, left), start)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _append(self, piece: bytes) -> None:
        room_bytes = self._bytes_max - self.size_bytes
        if len(piece) > room_bytes:
            self._cut(piece[:room_bytes], b"it has reached the limit of this agent")
            return
        self._since_check += len(piece)
        if self._since_check >= CHECK_FREE_EVERY_BYTES:
            self._since_check = 0
            if shutil.disk_usage(self._path.parent).free < FREE_BYTES_MIN:
                self._cut(b"", b"the disk of the agent is full")
                return
        try:
            self._write(piece)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._cut(b"", b"the disk of the agent is full")

    def _cut(self, last: bytes, reason: bytes) -> None:
        self.is_cut = True
        log.warning("output is dropped", attempt=self._path.parent.name, reason=reason.decode())
        with contextlib.suppress(OSError):
            self._write(last + CUT_NOTE % reason)

    def _write(self, piece: bytes) -> None:
        descriptor, left = self._opened(), memoryview(piece)
        while left:
            written = os.pwrite(descriptor, left, self.size_bytes)
            self.size_bytes += written
            left = left[written:]

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file
