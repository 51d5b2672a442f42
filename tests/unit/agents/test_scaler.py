"""Ticks of a scaler on a real store and an engine in memory, whatever the engine does."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.store.acts import submission

from ade.agents import block_rows
from ade.agents.launchers.port import Block, BlockRefused, EngineAway
from ade.agents.scaler import Scaler, ScalerRule
from ade.clock import ManualClock
from ade.domain.scaler_state import ScalerState
from ade.domain.scaling import YOUNG_SECONDS, ScaleRule
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
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


def wait_jobs(session: Session, jobs: int) -> None:
    """Submit jobs that wait for pilots."""
    kernel = Kernel(session, KernelSettings(queue_size=0))
    for number in range(jobs):
        kernel.now.submit(submission(payload=f'{{"value": {number}}}'))


def register(session: Session, block: str, slots: int = 2) -> None:
    """Note the pilot of a block."""
    kinds = '["echo"]'
    session.change(lambda tx: tx.put_worker(f"{block}/pilot", "host", kinds, slots, None, block))


def leave(session: Session, block: str) -> None:
    """Let the pilot of a block say goodbye."""
    session.change(lambda tx: tx.delete_worker(f"{block}/pilot"))


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


async def test_pilots_that_die_young_are_backed_off_from_ever_longer(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine, ScalerRule("a", "memory", ScaleRule(2, max_blocks=4)))
    wait_jobs(session, 20)
    ordered_at = []
    for second in range(0, 600, 5):
        for block in engine.blocks:  # each comes, and is gone at the next look
            register(session, block.name, slots=0)
        engine.blocks = []
        decision = await one.tick()
        ordered_at += [second] if decision and decision.launch else []
        clock.advance(5)
    assert ordered_at == [0, 35, 100, 225, 470]
    assert state(session).memory.failures == 5
    assert {row.status for row in blocks(session) if row.finished_at} == {"failed"}
    assert "Pilots died within 30 s, 5 times" in state(session).decisions[-1].reason


async def test_after_one_died_young_a_pilot_must_live_before_more_are_ordered(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine, ScalerRule("a", "memory", ScaleRule(1, max_blocks=4)))
    wait_jobs(session, 20)
    await one.tick()
    for block in engine.blocks:
        register(session, block.name, slots=0)
    engine.blocks = []
    await one.tick()
    clock.advance(30)
    await one.tick()
    (probe,) = engine.blocks
    register(session, probe.name, slots=0)
    clock.advance(YOUNG_SECONDS - 1)
    decision = await one.tick()
    assert decision is not None
    assert "must live for 30 s" in decision.reason
    clock.advance(1)
    await one.tick()
    assert len(engine.blocks) == 4
    assert state(session).memory.failures == 0


async def test_a_pilot_that_says_goodbye_has_not_failed_however_short_its_life(
    session: Session, engine: MemoryEngine
) -> None:
    one = scaler(session, engine)
    await one.tick()
    for block in engine.blocks:
        register(session, block.name)
        leave(session, block.name)
    engine.blocks = []
    await one.tick()
    assert [row.status for row in blocks(session) if row.finished_at] == ["ended", "ended"]
    assert state(session).memory.failures == 0


async def test_a_block_that_outlives_a_thousand_others_is_still_known(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine)
    await one.tick()
    names = sorted(row.name for row in blocks(session))
    clock.advance(1)
    now = clock.now_us()
    short = [
        block_rows.not_sent(block_rows.ordered(f"ade-a-{number}", "a", now), now)
        for number in range(1001)
    ]
    leader = ("a", "memory", one.owner, 30.0)
    session.change(lambda tx: tx.scaling.change(leader, None, short, [], 3600.0))
    await one.tick()
    live = session.read(lambda reading: reading.scaling.live_blocks("a"))
    assert sorted(row.name for row in live) == names


async def test_only_the_pilots_of_the_minimum_stay_when_they_are_idle(
    session: Session, engine: MemoryEngine
) -> None:
    idle: list[float | None] = []

    def command(name: str, idle_seconds: float | None) -> list[str]:
        idle.append(idle_seconds)
        return ["pilot", name]

    wait_jobs(session, 20)
    await Scaler(session, engine, RULE, command, frozenset({"echo"})).tick()
    assert idle == [None, None, 60.0, 60.0]


async def test_the_slots_of_a_pilot_whose_block_has_ended_are_not_free(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine, ScalerRule("a", "memory", ScaleRule(2, max_blocks=1)))
    wait_jobs(session, 2)
    await one.tick()
    register(session, engine.blocks[0].name)
    clock.advance(YOUNG_SECONDS)
    engine.blocks = []  # killed, and its note is still there
    decision = await one.tick()
    assert decision is not None
    assert decision.launch == 1


async def test_jobs_that_its_pilots_leave_waiting_do_not_bring_more_and_more_of_them(
    session: Session, engine: MemoryEngine, clock: ManualClock
) -> None:
    one = scaler(session, engine, ScalerRule("a", "memory", ScaleRule(2, max_blocks=4)))
    wait_jobs(session, 20)
    await one.tick()
    names = [block.name for block in engine.blocks]
    for _ in range(5):
        for name in names:  # they have free slots, and take no job
            register(session, name)
        await one.tick()
        clock.advance(5)
    for name in names:
        leave(session, name)
    engine.blocks = []
    decision = await one.tick()
    assert decision is not None
    assert decision.reason == (
        "Pilots with free slots left 20 jobs waiting, 1 time in a row: the next block is ordered"
        " in 25 s."
    )
    clock.advance(25)
    await one.tick()
    assert len(engine.blocks) == 1
