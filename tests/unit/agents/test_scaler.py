"""Ticks of a scaler on a real store and an engine in memory, whatever the engine does."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from ade.agents.launchers.port import Block, BlockRefused, EngineAway
from ade.agents.scaler import Scaler, ScalerRule
from ade.clock import ManualClock
from ade.domain.scaler_state import ScalerState
from ade.domain.scaling import ScaleRule
from ade.store.rows import BlockRow
from ade.store.session import Session

RULE = ScalerRule("a", "memory", ScaleRule(2, min_blocks=2, max_blocks=4))


class MemoryEngine:
    """Take blocks and list them; a test says what goes wrong."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.is_away = False
        self.on_launch: Callable[[str], None] = lambda name: None

    async def launch(self, name: str, command: Sequence[str]) -> str:
        self.on_launch(name)
        self.blocks.append(Block(name, f"id-{len(self.blocks)}", is_started=False))
        return self.blocks[-1].id

    async def poll(self) -> list[Block]:
        if self.is_away:
            raise EngineAway("no answer")
        return list(self.blocks)

    async def drain(self, ids: Sequence[str]) -> None: ...

    async def cancel(self, ids: Sequence[str]) -> None:
        self.blocks = [block for block in self.blocks if block.id not in ids]

    def describe(self) -> str:
        return "memory"


@pytest.fixture
def session(sqlite_url: str, clock: ManualClock) -> Iterator[Session]:
    store = Session(sqlite_url, clock=clock)
    yield store
    store.close()


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


def scaler(session: Session, engine: MemoryEngine, rule: ScalerRule = RULE) -> Scaler:
    return Scaler(session, engine, rule, lambda name, idle: ["pilot", name], frozenset({"echo"}))


def blocks(session: Session) -> list[BlockRow]:
    return session.read(lambda reading: reading.scaling.blocks("a"))


def state(session: Session) -> ScalerState:
    row = session.read(lambda reading: reading.scaling.find("a"))
    assert row is not None
    return ScalerState.from_json(row.state)


async def test_no_answer_is_not_no_blocks(session: Session, engine: MemoryEngine) -> None:
    one = scaler(session, engine)
    await one.tick()
    await one.tick()
    assert [row.status for row in blocks(session)] == ["queued", "queued"]
    engine.is_away = True
    for _ in range(3):
        assert await one.tick() is None
    assert [row.status for row in blocks(session)] == ["queued", "queued"]
    assert len(engine.blocks) == 2
    assert state(session).away_reason == "no answer"
    assert state(session).totals.times_away == 1
    engine.is_away = False
    await one.tick()
    assert state(session).away_since_us is None
    assert len(engine.blocks) == 2


async def test_a_restarted_scaler_adopts_what_the_engine_lists(
    session: Session, engine: MemoryEngine
) -> None:
    first = scaler(session, engine)
    await first.tick()
    engine.blocks.append(Block("ade-a-unknown", "id-9", is_started=True))
    other = scaler(session, engine)
    assert await other.tick() is None  # the first still holds the lease
    first.stop()
    await first.run()
    decision = await other.tick()
    assert decision is not None
    assert decision.launch == 0
    assert {block.name for block in engine.blocks} <= {row.name for row in blocks(session)}
    assert "ade-a-unknown" in {row.name for row in blocks(session) if row.status == "running"}


async def test_a_scaler_that_lost_its_lease_orders_nothing_more(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one, other = scaler(session, engine), scaler(session, engine)

    def be_slow(name: str) -> None:
        clock.advance(60)
        session.change(lambda tx: tx.scaling.lead("a", "memory", other.owner, 30.0))

    engine.on_launch = be_slow
    with pytest.raises(Exception, match="Another process decides"):
        await one.tick()
    assert len(engine.blocks) == 1
    engine.on_launch = lambda name: None
    await other.tick()
    assert sorted(row.status for row in blocks(session)) == ["failed", "queued"]


async def test_a_refused_order_is_a_failure_with_its_reason(
    session: Session, engine: MemoryEngine
) -> None:
    def refuse(name: str) -> None:
        raise BlockRefused("Invalid account")

    engine.on_launch = refuse
    one = scaler(session, engine)
    await one.tick()
    found = {row.status: row.detail for row in blocks(session)}
    assert found == {"failed": "Invalid account", "cancelled": "the order was not sent"}
    assert state(session).memory.failures == 1
    decision = await one.tick()
    assert decision is not None
    assert "ordered in 30 s" in decision.reason


async def test_an_order_without_an_answer_is_no_failure_and_may_be_adopted(
    session: Session, engine: MemoryEngine
) -> None:
    def vanish(name: str) -> None:
        engine.blocks.append(Block(name, "id-7", is_started=False))  # it was taken
        engine.on_launch = away
        raise EngineAway("timed out")

    def away(name: str) -> None:
        raise EngineAway("timed out")

    engine.on_launch = vanish
    one = scaler(session, engine)
    await one.tick()
    assert state(session).away_reason == "timed out"
    await one.tick()
    assert sorted(row.status for row in blocks(session)) == ["cancelled", "ordered", "queued"]
    engine.on_launch = lambda name: None
    await one.tick()
    assert state(session).memory.failures == 0
    assert len(engine.blocks) == 2


async def test_blocks_that_never_register_are_backed_off_from(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine)
    ordered_at = []
    for second in range(0, 600, 5):
        engine.blocks = []  # all that was ordered is gone at the next look
        decision = await one.tick()
        ordered_at += [second] if decision and decision.launch else []
        clock.advance(5)
    assert ordered_at == [0, 35, 100, 225, 470]
    assert state(session).memory.failures == 5
