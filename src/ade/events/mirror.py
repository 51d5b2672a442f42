"""Copy a job's events to `jobs/<id>/events.ndjson`, for people and tools that read files.

The database is the log; the file is its copy, written after the commit. A process that dies between
the two leaves the file short; the next one that touches the job appends what is missing, because it
starts from the last line that it finds. Lines are never written twice or out of order.
"""

import asyncio
import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ade.store.rows import JobRef, NewEvent
from ade.store.store import Store

FILE_NAME = "events.ndjson"
EVENTS_PER_READ = 500
TAIL_BYTES = 64 * 1024


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


class Mirror:
    """Keep the files of one jobs folder up to date."""

    def __init__(self, store: Store, jobs_dir: Path) -> None:
        self._store = store
        self._jobs_dir = jobs_dir

    async def sync(self, ref: JobRef) -> None:
        """Append what the file does not have yet."""
        await asyncio.to_thread(self.sync_now, ref)

    def sync_now(self, ref: JobRef) -> None:
        """Append what the file does not have yet, holding a lock against other processes."""
        folder = self._jobs_dir / ref.id
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(folder / FILE_NAME, flags, 0o644), "ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            seen = _last_seq(file)
            while events := self._after(ref, seen):
                lines = [json.dumps(event_json(event)) + "\n" for event in events]
                file.write("".join(lines).encode())
                file.flush()
                seen = events[-1].seq

    def _after(self, ref: JobRef, seq: int) -> list[NewEvent]:
        return self._store.read(lambda reading: reading.read_events(ref, seq, EVENTS_PER_READ))


def _last_seq(file: Any) -> int:
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
