"""What was heard of the hosts of agents: kept in memory, and written to the database now and then.

The model. Agents ask for work every few seconds and send heartbeats. Each server keeps what it
heard, and writes it at most once in `note_seconds` of the staleness rule, for all hosts together.
A host may speak to several servers; the database adds up what they write.

    what happens                      what becomes of what was heard
    --------------------------------  -------------------------------------------------------------
    the database is away              it is kept, and written when the database is back
    the server ends                   what was not written yet is lost; no job is given up for it,
                                      because the staleness rule allows for the delay
    more hosts than `HOSTS_MAX`       those that were silent longest are dropped from memory
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from ade.kernel import Kernel
from ade.stages.agents.hosts import HostNote

HOSTS_MAX = 10_000
log = structlog.get_logger()


@dataclass(slots=True)
class _Heard:
    seen: float
    asked: float | None = None
    beat: float | None = None
    info: str = "{}"
    active_jobs: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()


class AgentHosts:
    """Note which hosts were heard of."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._now: Callable[[], float] = kernel.monotonic
        self._heard: dict[str, _Heard] = {}
        self._unwritten: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    def asked(self, name: str, labels: frozenset[str] = frozenset()) -> None:
        """Note that a host asked for work, and which labels it has."""
        heard = self._hear(name)
        heard.asked, heard.labels = heard.seen, labels

    def beat(self, name: str, info: str, active_jobs: frozenset[str]) -> None:
        """Note a heartbeat: what the host says of itself, and which jobs it runs."""
        heard = self._hear(name)
        heard.beat, heard.info, heard.active_jobs = heard.seen, info, active_jobs

    def reported(self, name: str) -> None:
        """Note that a host reported on a job."""
        self._hear(name)

    def asked_within(self, name: str, seconds: float) -> bool:
        """Tell whether a host has asked this server for work lately."""
        heard = self._heard.get(name)
        asked = heard.asked if heard is not None else None
        return asked is not None and self._now() - asked <= seconds

    def notes(self) -> Mapping[str, HostNote]:
        """Return what this server heard of each host."""
        return {name: self._note(name, heard) for name, heard in self._heard.items()}

    def _hear(self, name: str) -> _Heard:
        heard = self._heard.pop(name, None) or _Heard(0)
        self._heard[name] = heard  # at the end: the first one was silent longest
        while len(self._heard) > HOSTS_MAX:
            silent = next(iter(self._heard))
            del self._heard[silent]
            self._unwritten.discard(silent)
        heard.seen = self._now()
        self._unwritten.add(name)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_later(), name="agent hosts")
        return heard

    async def _write_later(self) -> None:
        """Write what was heard, until there is nothing more to write."""
        while self._unwritten:
            try:
                await self.write()
            except Exception as error:
                log.warning("cannot note the hosts of agents", reason=type(error).__name__)
            await asyncio.sleep(self._kernel.settings.staleness.note_seconds)

    async def write(self) -> None:
        """Write what was heard since the last time; it is written when this returns."""
        async with self._lock:
            names, self._unwritten = self._unwritten, set()
            notes = {
                name: self._note(name, self._heard[name]) for name in names if name in self._heard
            }
            try:
                await self._kernel.note_hosts(list(notes.values()))
            except BaseException:
                self._unwritten |= names & self._heard.keys()
                raise
            for name, note in notes.items():
                heard = self._heard.get(name)
                if heard is not None and heard.active_jobs is note.active_jobs:
                    heard.active_jobs = frozenset()  # a heartbeat keeps jobs alive once

    def _note(self, name: str, heard: _Heard) -> HostNote:
        now = self._now()

        def ago(at: float | None) -> float | None:
            return None if at is None else max(now - at, 0.0)

        return HostNote(
            name,
            max(now - heard.seen, 0.0),
            ago(heard.asked),
            ago(heard.beat),
            _with_labels(heard.info, heard.labels),
            heard.active_jobs,
        )


def _with_labels(info: str, labels: frozenset[str]) -> str:
    """Add the labels of a host to what it says of itself."""
    return json.dumps(json.loads(info) | {"labels": sorted(labels)}) if labels else info
