"""Export a job's events to `jobs/<id>/events.ndjson`, for people and tools that read files.

The database holds the log; the file is a copy, written after the commit. A process that dies
between the two leaves the file short. The next one that exports the job starts at the last line
that it finds and appends what is missing. Lines are never written twice or out of order. A job that
has ended is not exported again, so each process that starts looks for files without an end.

A writer holds a lock on the file. A process that is frozen while it holds the lock delays others
for about a second: then the next one puts a new file in its place, and what the frozen process
writes later goes to the file that is gone.
"""

import asyncio
import fcntl
import json
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from ade.domain.events import EventType
from ade.store.port import Reading, Store
from ade.store.rows import JobRef, NewEvent

FILE_NAME = "events.ndjson"
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EVENTS_PER_READ = 500
TAIL_BYTES = 64 * 1024
# A writer holds the lock for milliseconds; one that still holds it after a second counts as frozen.
LOOK_SECONDS = 0.02
LOOKS = 50
ROUNDS_MAX = 3
FOLDERS_PER_LOOK = 500
_ENDS = frozenset(
    {
        EventType.SUCCEEDED,
        EventType.FAILED,
        EventType.TIMED_OUT,
        EventType.CANCELLED,
        EventType.RESOLVED,
        EventType.CLEARED,
    }
)


def event_json(event: NewEvent) -> dict[str, Any]:
    """Return an event as files and streams show it."""
    at = datetime.fromtimestamp(event.at / 1e6, UTC)
    return {
        "seq": event.seq,
        "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "event": event.type,
        "job_id": event.job_id,
        "data": json.loads(event.data),
    }


class EventFileExporter:
    """Keep the event files of one jobs folder up to date."""

    def __init__(self, store: Store, jobs_dir: Path) -> None:
        self._store = store
        self._jobs_dir = jobs_dir

    async def export(self, ref: JobRef) -> None:
        """Append what the file lacks, or replace it if another process keeps its lock."""
        for _ in range(ROUNDS_MAX):
            for _ in range(LOOKS):
                if await asyncio.to_thread(self.append, ref):
                    return
                await asyncio.sleep(LOOK_SECONDS)
            if await asyncio.to_thread(self._write_anew, ref):
                return
        raise TimeoutError("other processes keep the event file locked")

    async def complete_files(self) -> int:
        """Complete the files that a crash left short, and return how many had no end.

        It looks at every folder once; of those whose last event ends the job, only at that line.
        """
        folders = await asyncio.to_thread(_folders, self._jobs_dir)
        looked = 0
        for start in range(0, len(folders), FOLDERS_PER_LOOK):
            open_ended = await asyncio.to_thread(
                lambda some: [folder for folder in some if not _has_end(folder)],
                folders[start : start + FOLDERS_PER_LOOK],
            )
            refs = await asyncio.to_thread(self._refs, [folder.name for folder in open_ended])
            for ref in refs:
                await self.export(ref)
            looked += len(refs)
        return looked

    def _refs(self, ids: list[str]) -> list[JobRef]:
        """Find the workspaces of jobs; a folder does not tell its own."""
        if not ids:
            return []

        def look(reading: Reading) -> list[JobRef]:
            workspaces = reading.workspace_ids()
            refs = (JobRef(workspace, id_) for id_ in ids for workspace in workspaces)
            return [ref for ref in refs if reading.read_job(ref) is not None]

        return self._store.read(look)

    def append(self, ref: JobRef) -> bool:
        """Append what the file lacks; False if another process has locked it."""
        path = self._path(ref)
        with _opened(path, os.O_CREAT) as file:
            if not (_could_lock(file) and _is_at(path, file)):
                return False
            self._append_after(ref, _last_seq(file), file)
        return True

    def _write_anew(self, ref: JobRef) -> bool:
        """Put a new file in place of the locked one; False if another process did so first."""
        path = self._path(ref)
        made = path.with_name(f".{FILE_NAME}.{secrets.token_hex(8)}")
        try:
            with _opened(path, os.O_CREAT) as held, _opened(made, os.O_CREAT | os.O_EXCL) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it has no visible name yet
                seen = self._append_after(ref, 0, file)
                if not _is_at(path, held):
                    return False
                made.replace(path)
                # What others wrote to the old file was committed before, so this read finds it.
                self._append_after(ref, seen, file)
        finally:
            made.unlink(missing_ok=True)
        return True

    def _append_after(self, ref: JobRef, seen: int, file: BinaryIO) -> int:
        while events := self._after(ref, seen):
            lines = [json.dumps(event_json(event)) + "\n" for event in events]
            file.write("".join(lines).encode())
            file.flush()
            seen = events[-1].seq
        return seen

    def _path(self, ref: JobRef) -> Path:
        folder = self._jobs_dir / ref.id
        folder.mkdir(parents=True, exist_ok=True)
        return folder / FILE_NAME

    def _after(self, ref: JobRef, seq: int) -> list[NewEvent]:
        return self._store.read(lambda reading: reading.read_events(ref, seq, EVENTS_PER_READ))


def _folders(jobs_dir: Path) -> list[Path]:
    """List the folders of jobs: their names are identifiers."""
    try:
        return [entry for entry in jobs_dir.iterdir() if ID.fullmatch(entry.name)]
    except FileNotFoundError:
        return []


def _has_end(folder: Path) -> bool:
    """Tell whether the last line of a job's file says how the job ended."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            tail = file.read()
        return tail.endswith(b"\n") and json.loads(tail.splitlines()[-1])["event"] in _ENDS
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _opened(path: Path, flags: int) -> BinaryIO:
    ours = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, ours | flags, 0o600), "ab+")


def _could_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Tell whether the path still names this file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _last_seq(file: BinaryIO) -> int:
    """Read the sequence of the last whole line; cut off one that a crash left half written."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - TAIL_BYTES)
    file.seek(start)
    tail = file.read()
    whole = tail.rfind(b"\n") + 1
    if whole < len(tail):
        file.truncate(start + whole)
    lines = tail[:whole].splitlines()
    file.seek(0, os.SEEK_END)
    return int(json.loads(lines[-1])["seq"]) if lines else 0
