"""The output of agents' jobs: one file per attempt, appended to by its offset.

The model. An agent sends what a container writes in pieces of raw bytes, each with its offset. What
is held already is dropped, so a piece may come twice; one that leaves a gap is refused with the
size, and the agent goes on from there. `jobs/<job_id>/logs/<job_id>.log` is what people read: the
file of the current attempt. A file is never shared between attempts, because repeated bytes are
trusted to be the same: the first piece of another attempt moves the file of the former one aside.

    failure                                    what happens
    -----------------------------------------  ---------------------------------------------------
    the server ends between two pieces         the size is read from the file again
    the host loses power                       bytes that were not on disk are a gap: the agent,
                                               which keeps all until the end, sends them again
    two servers get pieces of one attempt at   one waits for the other (`flock`), also by NFS
    once
    a container holds the lock                 Unavailable: the agent sends the piece again
    a piece of an earlier attempt comes late   StaleAttempt
    the disk is full                           StorageFull; what was written of the piece counts
    more than the limit                        the rest is dropped, and the last line says so

Workers that share the folder may write the file themselves. Whatever is in it is untrusted.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ade.domain.errors import OutputGap, StaleAttempt, Unavailable, UnsafePath
from ade.domain.ids import is_uuid
from ade.domain.units import MIB
from ade.storage import contained_paths
from ade.storage.shared_folder import JOBS

LOGS = "logs"
LOCK = ".lock"
LOCK_SECONDS = 2.0
LOCK_PAUSE_SECONDS = 0.005
CURRENT_ATTEMPT = "attempt"
NUMBER_BYTES_MAX = 20
BYTES_MAX = 256 * MIB
ATTEMPTS_TRIED = 3  # how often one reader may meet the start of another attempt
CUT_LINE = b"\n[ade: the output is cut here: it is larger than ADE_AGENT_OUTPUT_MAX_MB allows]\n"


@dataclass(frozen=True, slots=True)
class LogState:
    """Say how many bytes of an attempt's output are held, and whether more are dropped."""

    held_bytes: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Hold a part of an attempt's output, with its size and when it was last written to."""

    attempt: int | None
    size_bytes: int
    written_at: int
    piece: bytes


class AttemptLogs:
    """Store and read the output of jobs below the shared folder.

    All of this waits for a disk, which may be one of another machine: call it in a thread.
    """

    def __init__(self, root: Path, bytes_max: int = BYTES_MAX) -> None:
        self._root = root
        self.bytes_max = bytes_max

    def append(self, job_id: str, attempt: int, offset_bytes: int, piece: bytes) -> LogState:
        """Append what is not held yet; raise OutputGap if the bytes before it are missing."""
        with self._locked(job_id) as folder:
            _begin_attempt(folder, job_id, attempt)
            descriptor = contained_paths.open_file(
                folder, _name(job_id), os.O_RDWR | os.O_CREAT | os.O_APPEND
            )
            try:
                return self._append(descriptor, offset_bytes, piece)
            finally:
                os.close(descriptor)

    def _append(self, descriptor: int, offset_bytes: int, piece: bytes) -> LogState:
        state = _state(descriptor)
        if state.is_cut:
            return state
        if offset_bytes > state.held_bytes:
            raise OutputGap(
                f"The output is held up to byte {state.held_bytes}; go on from there.",
                held_bytes=state.held_bytes,
            )
        new = memoryview(piece)[state.held_bytes - offset_bytes :]
        room_bytes = max(self.bytes_max - state.held_bytes, 0)
        _write(descriptor, new[:room_bytes])
        if len(new) <= room_bytes:
            return LogState(state.held_bytes + len(new))
        _write(descriptor, memoryview(CUT_LINE))
        return LogState(state.held_bytes + room_bytes, is_cut=True)

    def held(self, job_id: str, attempt: int) -> LogState:
        """Return how much of an attempt's output is held."""
        with contextlib.suppress(FileNotFoundError), self._folder(job_id) as folder:
            if _current_attempt(folder) == attempt:
                with _opened(folder, job_id) as descriptor:
                    return _state(descriptor)
        return LogState(0)

    def sync(self, job_id: str) -> None:
        """Bring the output of the current attempt to disk."""
        with contextlib.suppress(FileNotFoundError), self._output(job_id) as descriptor:
            os.fsync(descriptor)

    # --- for those who read -----------------------------------------------------------------------

    def look(
        self, job_id: str, start: int, bytes_max: int, attempt: int | None = None
    ) -> LogSlice | None:
        """Return output from a place on, of one attempt or of the current one; None without any.

        The number of the attempt is None if no server began it: a worker wrote the file itself.
        """
        with contextlib.suppress(FileNotFoundError), self._folder(job_id) as folder:
            for _ in range(ATTEMPTS_TRIED):
                current = _current_attempt(folder)
                is_current = attempt in (None, current) or current is None
                name = _name(job_id) if is_current else _earlier_name(job_id, attempt)
                descriptor = contained_paths.open_file(folder, name, os.O_RDONLY)
                try:
                    if _current_attempt(folder) == current:  # else it may be another one's file
                        facts = os.fstat(descriptor)
                        piece = os.pread(descriptor, bytes_max, start)
                        number = current if is_current else attempt
                        return LogSlice(number, facts.st_size, facts.st_mtime_ns // 1000, piece)
                finally:
                    os.close(descriptor)
        return None

    def size(self, job_id: str) -> int | None:
        """Return the size of what a job has written so far; None if there is nothing here."""
        with contextlib.suppress(FileNotFoundError), self._output(job_id) as descriptor:
            return os.fstat(descriptor).st_size
        return None

    def read(self, job_id: str, start: int, bytes_max: int) -> bytes:
        """Return output from a place on; nothing where there is none."""
        with contextlib.suppress(FileNotFoundError), self._output(job_id) as descriptor:
            return os.pread(descriptor, bytes_max, start)
        return b""

    @contextlib.contextmanager
    def _folder(self, job_id: str, *, make: bool = False) -> Iterator[int]:
        parts = [JOBS, _checked(job_id), LOGS]
        with contained_paths.opened_folder(self._root, parts, make=make) as folder:
            yield folder

    @contextlib.contextmanager
    def _output(self, job_id: str) -> Iterator[int]:
        with self._folder(job_id) as folder, _opened(folder, job_id) as descriptor:
            yield descriptor

    @contextlib.contextmanager
    def _locked(self, job_id: str) -> Iterator[int]:
        """Open the folder of a job's output; no other thread, process or server has it so."""
        with self._folder(job_id, make=True) as folder:
            lock = contained_paths.open_file(folder, LOCK, os.O_RDWR | os.O_CREAT)
            try:
                _lock(lock)
                yield folder
            finally:
                os.close(lock)


def _lock(descriptor: int) -> None:
    """Lock a file, or raise Unavailable: a container that may open it can hold it for ever."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Unavailable("Something else holds the output of this job locked.") from None
        time.sleep(LOCK_PAUSE_SECONDS)


def _checked(job_id: str) -> str:
    if not is_uuid(job_id):
        raise UnsafePath("The id of a job is a UUID.")
    return job_id.lower()


def _name(job_id: str) -> str:
    return f"{job_id.lower()}.log"


def _earlier_name(job_id: str, attempt: int | None) -> str:
    return f"{job_id.lower()}.{'earlier' if attempt is None else f'attempt-{attempt}'}.log"


@contextlib.contextmanager
def _opened(folder: int, job_id: str) -> Iterator[int]:
    descriptor = contained_paths.open_file(folder, _name(job_id), os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _state(descriptor: int) -> LogState:
    size = os.fstat(descriptor).st_size
    end = max(size - len(CUT_LINE), 0)
    if os.pread(descriptor, len(CUT_LINE), end) == CUT_LINE:
        return LogState(end, is_cut=True)
    return LogState(size)


def _write(descriptor: int, piece: memoryview) -> None:
    with contained_paths.room():
        while piece:
            piece = piece[os.write(descriptor, piece) :]


def _current_attempt(folder: int) -> int | None:
    """Return the number of the attempt that the file belongs to; None if no server began it."""
    try:
        descriptor = contained_paths.open_file(folder, CURRENT_ATTEMPT, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        digits = file.read(NUMBER_BYTES_MAX)
    return int(digits) if digits.isdigit() else None


def _begin_attempt(folder: int, job_id: str, attempt: int) -> None:
    """Make the file that of an attempt; that of an earlier one gets another name."""
    current = _current_attempt(folder)
    if current == attempt:
        return
    if current is not None and current > attempt:
        raise StaleAttempt(f"Attempt {attempt} is over: attempt {current} writes the output now.")
    aside = _earlier_name(job_id, current)
    with contextlib.suppress(FileNotFoundError):
        os.rename(_name(job_id), aside, src_dir_fd=folder, dst_dir_fd=folder)
    unfinished = f"{contained_paths.UNFINISHED_PREFIX}{CURRENT_ATTEMPT}"
    descriptor = contained_paths.open_file(
        folder, unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    )
    try:
        _write(descriptor, memoryview(str(attempt).encode()))
    finally:
        os.close(descriptor)
    try:
        os.rename(unfinished, CURRENT_ATTEMPT, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EISDIR:
            raise UnsafePath(f"{CURRENT_ATTEMPT!r} in the folder of a log is a folder.") from None
        raise
