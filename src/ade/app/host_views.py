"""What `/hosts` shows of the hosts of agents."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ade.domain.staleness import StalenessRule
from ade.domain.units import MICROSECONDS
from ade.stages.agents.hosts import HostNote
from ade.store.rows import AgentRow, HeldJob, HostRow


@dataclass(frozen=True, slots=True)
class KnownHost:
    """Hold what is known of a host, whichever server heard it."""

    name: str
    seen_at: int
    asked_at: int | None
    beat_at: int | None
    info: dict[str, Any]


def known_hosts(
    rows: Iterable[HostRow], notes: Mapping[str, HostNote], now_us: int
) -> list[KnownHost]:
    """Bring together what is stored of hosts and what this server has heard since."""
    found = {row.name: _stored(row) for row in rows}
    for name, note in notes.items():
        heard = _heard(note, now_us)
        stored = found.get(name)
        found[name] = heard if stored is None else _later(stored, heard)
    return sorted(found.values(), key=lambda host: host.name)


def host_body(
    host: KnownHost,
    rule: StalenessRule,
    now_us: int,
    *,
    agent: AgentRow | None,
    jobs: Collection[HeldJob],
    available: Collection[str],
) -> dict[str, Any]:
    """Show a host: whether it is there, what it said of itself, and the jobs that it holds."""
    is_online = rule.is_online(host.seen_at, now_us)
    is_stale = not is_online and host.seen_at >= rule.silent_before(now_us)
    return {
        "worker_id": host.name,
        "status": "online" if is_online else "stale" if is_stale else "offline",
        "online": is_online,
        "available": not available or host.name in available,
        "last_seen": host.seen_at / MICROSECONDS,
        "last_heartbeat": _seconds(host.beat_at),
        "last_asked": _seconds(host.asked_at),
        "info": host.info,
        "labels": json.loads(agent.labels) if agent is not None else [],
        "running_jobs": sorted(job.id for job in jobs),
    }


def _seconds(at: int | None) -> float | None:
    return None if at is None else at / MICROSECONDS


def _stored(row: HostRow) -> KnownHost:
    return KnownHost(row.name, row.seen_at, row.asked_at, row.beat_at, json.loads(row.info))


def _heard(note: HostNote, now_us: int) -> KnownHost:
    def at(seconds_ago: float | None) -> int | None:
        return None if seconds_ago is None else now_us - int(seconds_ago * MICROSECONDS)

    seen_at = at(note.seen_seconds_ago) or now_us
    asked_at, beat_at = at(note.asked_seconds_ago), at(note.beat_seconds_ago)
    return KnownHost(note.name, seen_at, asked_at, beat_at, json.loads(note.info))


def _later(one: KnownHost, other: KnownHost) -> KnownHost:
    said = other if (other.beat_at or 0) >= (one.beat_at or 0) and other.beat_at else one
    return KnownHost(
        one.name,
        max(one.seen_at, other.seen_at),
        max((at for at in (one.asked_at, other.asked_at) if at), default=None),
        said.beat_at,
        said.info,
    )
