"""The agents that were enrolled, as calls: enrol them, trade codes, rotate and revoke keys."""

from collections.abc import Collection, Sequence

from ade.domain.enrolment import CODE_MINUTES, OVERLAP_MINUTES
from ade.store.rows import AgentRow, HostRow, NewAgentKey
from ade.store.session import Session


class Agents:
    """Read and change which agents may take jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now_us(self) -> int:
        """Return the time of the database."""
        return self._session.clock.now_us()

    async def enrol(
        self, name: str, labels: Collection[str] = (), code_minutes: int = CODE_MINUTES
    ) -> NewAgentKey:
        """Give an agent a key and a code, or raise Conflict if it has a key."""
        return await self._session.achange(
            lambda tx: tx.agents.enrol(name, labels, code_minutes),
            lambda reading, new: reading.agents.find_by_key(new.key) is not None,
        )

    async def rotate(
        self,
        name: str,
        code_minutes: int = CODE_MINUTES,
        overlap_minutes: int = OVERLAP_MINUTES,
    ) -> NewAgentKey:
        """Give an agent another key and a code; the key that it has works a while longer."""
        return await self._session.achange(
            lambda tx: tx.agents.rotate(name, code_minutes, overlap_minutes),
            lambda reading, new: reading.agents.find_by_key(new.key) is not None,
        )

    async def trade(self, code: str) -> NewAgentKey:
        """Trade a code for a key, once, or raise Unauthenticated."""
        return await self._session.achange(
            lambda tx: tx.agents.trade(code),
            lambda reading, new: reading.agents.find_by_key(new.key) is not None,
        )

    async def revoke(self, name: str) -> AgentRow:
        """Take an agent's keys and its code; revoking it twice is harmless."""
        return await self._session.achange(
            lambda tx: tx.agents.revoke(name),
            lambda reading, revoked: reading.agents.find(name) == revoked,
        )

    async def record_use(self, digests: Sequence[str]) -> None:
        """Record that keys are in use; the codes that were given out with them are void."""
        await self._session.achange(
            lambda tx: tx.agents.record_use(digests), lambda reading, _: True
        )

    async def has_key(self, key: str) -> bool:
        """Tell whether some agent has this key."""
        return await self._session.aread(
            lambda reading: reading.agents.find_by_key(key) is not None
        )

    async def list_all(self) -> list[AgentRow]:
        """List the agents by name, also revoked ones."""
        return await self._session.aread(lambda reading: reading.agents.list_all())

    async def list_with_hosts(self) -> list[tuple[AgentRow, HostRow | None]]:
        """List the agents by name, each with what was heard of its host."""
        agents, hosts = await self._session.aread(
            lambda reading: (reading.agents.list_all(), reading.agent_jobs.hosts())
        )
        by_name = {host.name: host for host in hosts}
        return [(agent, by_name.get(agent.name)) for agent in agents]
