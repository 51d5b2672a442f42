"""The rows of scalers on each SQL database: one leader, blocks under its lease, what waits."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import LIMITS, submission

from ade.clock import ManualClock
from ade.domain.errors import Conflict
from ade.domain.job import LOCAL_POOL
from ade.domain.limits import Limits
from ade.domain.queue_pause import PauseScope
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.kernel_settings import KernelSettings
from ade.stages.queue_pauses import PauseQueue
from ade.stages.workers import RunningWorker
from ade.store.rows import BlockRow
from ade.store.session import Session

LEASE_SECONDS = 30.0
KEPT_SECONDS = 3600.0
OWNER = ("a", "slurm", "one", LEASE_SECONDS)
OTHER = ("a", "slurm", "two", LEASE_SECONDS)


@pytest.fixture
def session(open_session: Callable[[], Session]) -> Session:
    return open_session()


def block(name: str, at: int, **changes: Any) -> BlockRow:
    row = BlockRow(name, "a", None, "ordered", "", at, None, None, None, None)
    return row._replace(**changes)


def lead(session: Session, leader: tuple[str, str, str, float]) -> bool:
    return session.change(lambda tx: tx.scaling.lead(*leader))


def change(
    session: Session,
    leader: tuple[str, str, str, float],
    new: list[BlockRow],
    changed: list[BlockRow],
    state: str | None = None,
) -> None:
    session.change(lambda tx: tx.scaling.change(leader, state, new, changed, KEPT_SECONDS))


def test_one_process_leads_until_its_lease_ends_or_is_given_back(
    session: Session, clock: ManualClock
) -> None:
    assert lead(session, OWNER)
    assert not lead(session, OTHER)
    clock.advance(LEASE_SECONDS - 1)
    assert lead(session, OWNER)
    clock.advance(LEASE_SECONDS - 1)
    assert not lead(session, OTHER)
    clock.advance(2)
    assert lead(session, OTHER)
    assert not lead(session, OWNER)
    session.change(lambda tx: tx.scaling.stop_leading("a", "one"))  # it is not his any more
    assert not lead(session, OWNER)
    session.change(lambda tx: tx.scaling.stop_leading("a", "two"))
    assert lead(session, OWNER)


def test_without_the_lease_no_block_and_no_state_is_written(session: Session) -> None:
    assert lead(session, OWNER)
    change(session, OWNER, [block("b1", 1)], [], '{"where": "one"}')
    with pytest.raises(Conflict):
        change(session, OTHER, [block("b2", 2)], [block("b1", 1, status="queued")], "{}")
    (row,) = session.read(lambda reading: reading.scaling.blocks("a"))
    assert (row.name, row.status) == ("b1", "ordered")
    found = session.read(lambda reading: reading.scaling.find("a"))
    assert found is not None
    assert found.state == '{"where": "one"}'


def test_a_pilot_registers_once_and_its_goodbye_is_noted(
    session: Session, clock: ManualClock
) -> None:
    assert lead(session, OWNER)
    now = clock.now_us()
    change(session, OWNER, [block("b1", now), block("b2", now)], [])
    session.change(lambda tx: tx.put_worker("b1/pilot", "host", "[]", 1, None, "b1"))
    clock.advance(5)
    session.change(lambda tx: tx.put_worker("b1/pilot", "host", "[]", 1, None, "b1"))
    session.change(lambda tx: tx.delete_worker("b1/pilot"))
    rows = {row.name: row for row in session.read(lambda reading: reading.scaling.blocks("a"))}
    came, left = rows["b1"].registered_at, rows["b1"].left_at
    assert came is not None
    assert left is not None
    assert left - came >= 5_000_000
    assert (rows["b2"].registered_at, rows["b2"].left_at) == (None, None)
    # What the scaler writes of a block leaves alone what its pilot wrote.
    change(session, OWNER, [], [rows["b1"]._replace(status="queued", registered_at=None)])
    (row,) = [
        one for one in session.read(lambda reading: reading.scaling.blocks("a")) if one.name == "b1"
    ]
    assert (row.status, row.registered_at) == ("queued", came)


def test_blocks_are_forgotten_some_time_after_their_end(
    session: Session, clock: ManualClock
) -> None:
    assert lead(session, OWNER)
    now = clock.now_us()
    ended = block("b1", now, status="ended", finished_at=now)
    change(session, OWNER, [ended, block("b2", now)], [])
    clock.advance(KEPT_SECONDS + 1)
    change(session, OWNER, [], [])
    assert [r.name for r in session.read(lambda reading: reading.scaling.blocks("a"))] == ["b2"]
    assert [r.name for r in session.read(lambda reading: reading.scaling.live_blocks("a"))] == [
        "b2"
    ]


def test_the_backlog_counts_what_a_worker_could_take_now_by_kind_and_timeout(
    session: Session, clock: ManualClock
) -> None:
    kernel = Kernel(session, KernelSettings(queue_size=0))
    longer = Limits(**LIMITS.as_dict() | {"timeout_ms": 120_000})
    for number in range(3):
        kernel.now.submit(submission(payload=f"[{number}]"))
    kernel.now.submit(submission(payload="[9]", limits=longer))
    kernel.now.submit(submission(kind="other"))
    kernel.now.submit(submission(payload="[10]", not_before=clock.now_us() + 60_000_000))
    kernel.now.claim(ClaimRequest("worker-1", 1, LOCAL_POOL, kinds=frozenset({"other"})))
    found = session.read(lambda reading: reading.scaling.backlog(LOCAL_POOL, 60_000))
    counted = {(one.kind, bool(one.fits)): (one.jobs, one.timeout_ms) for one in found}
    assert counted == {("echo", True): (3, 60_000), ("echo", False): (1, 120_000)}
    busy = session.read(lambda reading: reading.scaling.running_by_owner(LOCAL_POOL))
    assert busy == {"worker-1": 1}


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (PauseScope(), set()),
        (PauseScope(WORKSPACE), set()),
        (PauseScope(kind="echo"), {"other"}),
        (PauseScope(WORKSPACE, "other"), {"echo"}),
        (PauseScope(kind="none"), {"echo", "other"}),
        (PauseScope(worker="w"), {"echo", "other"}),
    ],
)
def test_what_is_paused_is_not_in_the_backlog(
    session: Session, scope: PauseScope, left: set[str]
) -> None:
    kernel = Kernel(session, KernelSettings(queue_size=0))
    kernel.now.note_worker(RunningWorker("w", "host", frozenset({"echo"})))
    for kind in ("echo", "other"):
        kernel.now.submit(submission(kind=kind))
    kernel.now.pause_queue(PauseQueue(scope, "operator", "bad release"))
    found = session.read(lambda reading: reading.scaling.backlog(LOCAL_POOL, 60_000))
    assert {one.kind for one in found} == left
