"""The agents that were enrolled: their keys, the codes that are traded for one, and revocation."""

import asyncio
import json
from collections.abc import Callable

import pytest
from tests.databases import SqlDatabase

from ade.app.agents import Agents
from ade.clock import ManualClock
from ade.domain.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from ade.store import agents as stored
from ade.store import schema
from ade.store.directory import key_digest
from ade.store.rows import AgentRow, NewAgentKey
from ade.store.session import Session

MINUTE_US = 60 * 10**6


@pytest.fixture
def agents(open_session: Callable[[], Session]) -> Agents:
    """Open the agents of a database."""
    return Agents(open_session())


async def the_agent(agents: Agents) -> AgentRow:
    (agent,) = await agents.list_all()
    return agent


async def test_an_agent_is_enrolled_with_a_key_and_a_code(
    agents: Agents, clock: ManualClock
) -> None:
    new = await agents.enrol("gpu-1", ["gpu", "a100", "gpu"], code_minutes=5)
    agent = await the_agent(agents)
    assert agent == new.agent
    assert (agent.name, json.loads(agent.labels)) == ("gpu-1", ["a100", "gpu"])
    assert agent.key_digest == key_digest(new.key)
    assert agent.code_expires_at == agent.created_at + 5 * MINUTE_US
    assert (agent.rotated_at, agent.revoked_at, agent.last_used_at) == (None, None, None)
    assert new.key.startswith("adea_")
    assert new.code is not None
    assert new.code.startswith("adec_")
    assert new.key not in repr(new)
    assert new.code not in repr(new)


async def test_neither_key_nor_code_is_stored(agents: Agents, sql_database: SqlDatabase) -> None:
    new = await agents.enrol("gpu-1")
    with sql_database.connect() as connection:
        stored_text = repr(connection.execute(schema.agents.select()).all())
    assert new.key not in stored_text
    assert str(new.code) not in stored_text


async def test_a_code_is_worth_one_key(agents: Agents) -> None:
    new = await agents.enrol("gpu-1")
    assert new.code is not None
    traded = await agents.trade(new.code)
    assert traded.key != new.key
    assert traded.code is None
    assert (await the_agent(agents)).key_digest == key_digest(traded.key)
    with pytest.raises(Unauthenticated, match="ade agents rotate"):
        await agents.trade(new.code)


async def test_of_two_trades_at_once_one_gets_a_key(
    open_session: Callable[[], Session],
) -> None:
    first, second = Agents(open_session()), Agents(open_session())
    new = await first.enrol("gpu-1")
    assert new.code is not None
    both = await asyncio.gather(
        first.trade(new.code), second.trade(new.code), return_exceptions=True
    )
    (traded,) = [one for one in both if isinstance(one, NewAgentKey)]
    assert [type(one) for one in both if one is not traded] == [Unauthenticated]
    assert (await the_agent(first)).key_digest == key_digest(traded.key)


async def test_a_code_expires(agents: Agents, clock: ManualClock) -> None:
    new = await agents.enrol("gpu-1", code_minutes=1)
    clock.advance(60)
    assert new.code is not None
    with pytest.raises(Unauthenticated):
        await agents.trade(new.code)


@pytest.mark.parametrize("code", ["", "adec_", "\x00", "\udcff"])
async def test_what_is_no_code_is_refused(agents: Agents, code: str) -> None:
    await agents.enrol("gpu-1")
    with pytest.raises(Unauthenticated):
        await agents.trade(code)


async def test_the_first_use_of_a_key_makes_its_code_void(
    agents: Agents, clock: ManualClock
) -> None:
    new = await agents.enrol("gpu-1")
    clock.advance(1)
    await agents.record_use([key_digest(new.key), key_digest("another")])
    agent = await the_agent(agents)
    assert agent.last_used_at == agent.created_at + 10**6
    assert agent.code_expires_at is None
    assert new.code is not None
    with pytest.raises(Unauthenticated):
        await agents.trade(new.code)


async def test_a_replaced_key_works_a_while_longer(agents: Agents, clock: ManualClock) -> None:
    first = await agents.enrol("gpu-1", ["gpu"])
    clock.advance(60)
    second = await agents.rotate("gpu-1", overlap_minutes=10)
    agent = await the_agent(agents)
    assert agent.labels == '["gpu"]'
    assert agent.key_digest == key_digest(second.key)
    assert agent.old_key_digest == key_digest(first.key)
    assert agent.rotated_at is not None
    assert agent.old_key_expires_at == agent.rotated_at + 10 * MINUTE_US
    await agents.record_use([key_digest(first.key)])
    assert second.code is not None
    third = await agents.trade(second.code)  # the use of the old key did not make it void
    agent = await the_agent(agents)
    assert agent.last_used_at is not None
    assert agent.key_digest == key_digest(third.key)
    assert agent.old_key_digest == key_digest(first.key)


async def test_a_revoked_agent_has_no_keys(agents: Agents) -> None:
    new = await agents.enrol("gpu-1")
    await agents.rotate("gpu-1")
    revoked = await agents.revoke("gpu-1")
    assert revoked.revoked_at is not None
    assert (revoked.key_digest, revoked.old_key_digest, revoked.code_digest) == (None, None, None)
    assert await agents.revoke("gpu-1") == revoked
    assert new.code is not None
    with pytest.raises(Unauthenticated):
        await agents.trade(new.code)
    with pytest.raises(Conflict, match="ade agents enrol gpu-1"):
        await agents.rotate("gpu-1")


async def test_a_revoked_agent_can_be_enrolled_again(agents: Agents, clock: ManualClock) -> None:
    first = await agents.enrol("gpu-1", ["gpu"])
    await agents.record_use([key_digest(first.key)])
    await agents.rotate("gpu-1")
    await agents.revoke("gpu-1")
    clock.advance(1)
    again = await agents.enrol("gpu-1", ["cpu"])
    agent = await the_agent(agents)
    assert agent == again.agent
    assert agent.id == first.agent.id
    assert agent.labels == '["cpu"]'
    assert agent.created_at == first.agent.created_at + 10**6
    assert (agent.rotated_at, agent.revoked_at, agent.last_used_at) == (None, None, None)
    assert (agent.old_key_digest, agent.old_key_expires_at) == (None, None)


async def test_an_agent_is_enrolled_once(
    agents: Agents, open_session: Callable[[], Session]
) -> None:
    new = await agents.enrol("gpu-1")
    with pytest.raises(Conflict, match="ade agents rotate gpu-1"):
        await agents.enrol("gpu-1")
    assert (await the_agent(agents)).key_digest == key_digest(new.key)
    other = Agents(open_session())
    both = await asyncio.gather(agents.enrol("gpu-2"), other.enrol("gpu-2"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in both) == ["Conflict", "NewAgentKey"]


@pytest.mark.parametrize("name", ["", "..", "a b", "a/b", "-a", "a" * 101, "é"])
async def test_names_fit_into_a_path(agents: Agents, name: str) -> None:
    with pytest.raises(InvalidRequest):
        await agents.enrol(name)


@pytest.mark.parametrize("labels", [["a b"], [""], [f"l{number}" for number in range(51)]])
async def test_labels_are_bounded(agents: Agents, labels: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        await agents.enrol("gpu-1", labels)


async def test_agents_are_bounded(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "AGENTS_MAX", 2)
    await agents.enrol("gpu-1")
    await agents.enrol("gpu-2")
    with pytest.raises(Conflict, match="2 agents"):
        await agents.enrol("gpu-3")


async def test_unknown_agents_are_not_found(agents: Agents) -> None:
    with pytest.raises(NotFound):
        await agents.rotate("gpu-1")
    with pytest.raises(NotFound):
        await agents.revoke("gpu-1")
    assert await agents.list_all() == []
