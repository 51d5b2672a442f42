"""The attempts of a job, read off its event log."""

import json

from ade.app.times import rfc3339
from ade.domain.events import ENDS_ATTEMPT, STARTS_ATTEMPT
from ade.http.schemas.jobs import Attempt
from ade.store.port import Reading
from ade.store.rows import JobRef, NewEvent

EVENTS_PER_READ = 1000
_STARTS = frozenset(kind.value for kind in STARTS_ATTEMPT)
_ENDS = frozenset(kind.value for kind in ENDS_ATTEMPT)


def read_attempts(reading: Reading, ref: JobRef) -> list[Attempt]:
    """Read a job's log from its start and gather what belongs together."""
    found: dict[int, Attempt] = {}
    after = 0
    while events := reading.read_events(ref, after, EVENTS_PER_READ):
        for event in events:
            _note(found, event)
        after = events[-1].seq
    return list(found.values())


def _note(found: dict[int, Attempt], event: NewEvent) -> None:
    if event.type not in _STARTS and event.type not in _ENDS:
        return
    data = json.loads(event.data)
    number = data.get("attempt")
    if event.type in _STARTS:
        attempt = found.setdefault(number, _new(number, event))
        attempt["worker"] = data.get("worker", attempt["worker"])
    elif number in found and found[number]["ended_at"] is None:
        attempt = found[number]
        attempt["status"] = event.type.removeprefix("job.")
        attempt["ended_at"] = rfc3339(event.at)
        attempt["error"] = data.get("error")


def _new(number: int, event: NewEvent) -> Attempt:
    return {
        "attempt": number,
        "worker": None,
        "status": "running",
        "started_at": rfc3339(event.at),
        "ended_at": None,
        "error": None,
    }
