"""Which agent a key belongs to, for requests that come every few seconds from each agent.

The rule about time. All agents are read together, at most once in `CACHE_SECONDS`, so that a poll
costs no query. A key that was revoked through another server may therefore work so much longer.
A key that is not known is always looked for in the database. While that is away, the keys that
were known stay valid.
"""

import asyncio
import json
from dataclasses import dataclass

import structlog

from ade.app.agents import Agents
from ade.clock import Clock
from ade.domain.errors import AdeError
from ade.domain.units import MICROSECONDS
from ade.store.agents import AGENT_KEY_PREFIX
from ade.store.directory import key_digest
from ade.store.rows import AgentRow

CACHE_SECONDS = 5.0
# How often it is written down that a key is in use.
USED_SECONDS = 600
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class EnrolledAgent:
    """Name an agent that has a key, and its labels."""

    id: str
    name: str
    labels: frozenset[str]


class EnrolledAgents:
    """Find agents by their keys."""

    def __init__(self, agents: Agents, clock: Clock) -> None:
        self._agents = agents
        self._clock = clock
        self._by_digest: dict[str, AgentRow] | None = None
        self._names: frozenset[str] = frozenset()
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """Read the agents again with the next request, after they were changed here."""
        self._read_at = None

    async def by_key(self, key: str) -> EnrolledAgent | None:
        """Find the agent of a key, if the key is valid."""
        digest = key_digest(key)
        await self._refresh()
        found = self._valid(digest)
        if found is None and await self._agents.has_key(key):
            await self._read()
            found = self._valid(digest)
        if found is None:
            return None
        await self._record_use(found, digest)
        return EnrolledAgent(found.id, found.name, frozenset(json.loads(found.labels)))

    async def names(self) -> frozenset[str]:
        """Return the names of all agents that were ever enrolled: these must use their keys."""
        await self._refresh()
        return self._names

    def _valid(self, digest: str) -> AgentRow | None:
        found = (self._by_digest or {}).get(digest)
        if found is None or found.key_digest == digest:
            return found
        is_over = (found.old_key_expires_at or 0) <= self._clock.now_us()
        return None if is_over else found

    async def _refresh(self) -> None:
        if self._is_fresh():
            return
        async with self._reading:
            if self._is_fresh():
                return
            try:
                await self._read()
            except AdeError:
                if self._by_digest is None:
                    raise
                log.warning("agents cannot be read; the keys that were known stay valid")
                self._read_at = self._clock.monotonic()

    async def _read(self) -> None:
        rows = await self._agents.list_all()
        digests = ((row, (row.key_digest, row.old_key_digest)) for row in rows)
        self._by_digest = {one: row for row, both in digests for one in both if one}
        self._names = frozenset(row.name for row in rows)
        self._read_at = self._clock.monotonic()

    def _is_fresh(self) -> bool:
        at = self._read_at
        return at is not None and self._clock.monotonic() - at < CACHE_SECONDS

    async def _record_use(self, agent: AgentRow, digest: str) -> None:
        """Write down that a key is in use, now and then; the code beside a new key is void then."""
        since = self._clock.now_us() - USED_SECONDS * MICROSECONDS
        was_shown_with_code = agent.code_digest is not None and agent.key_digest == digest
        if (agent.last_used_at or 0) >= since and not was_shown_with_code:
            return
        try:
            await self._agents.record_use([digest])
        except AdeError:
            return  # it is written with a later request
        self.forget()


def is_agent_key(key: str) -> bool:
    """Tell whether a key is an agent's, by how it begins."""
    return key.startswith(AGENT_KEY_PREFIX)
