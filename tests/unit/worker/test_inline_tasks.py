"""Inline tasks: bounded, shared fairly, rejected when too many wait, and nothing is left."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.processes import aeventually, is_alive
from tests.unit.worker.bench import ROGUES

from ade.domain.errors import Unavailable
from ade.domain.limits import Limits
from ade.worker.inline_tasks import (
    WAITING_MAX,
    WAITING_PER_WORKSPACE_MAX,
    FairSlots,
    InlineTasks,
)
from ade.worker.subprocess_runner import SubprocessRunner

SHORT = Limits(timeout_ms=500, cpu_ms=5000, memory_mb=256, max_output_kb=4, max_artifacts=0)
ROGUE = SubprocessRunner(command=ROGUES, stop_grace_seconds=0.2)
ENTRY = "rogues"
Hold = Callable[..., Awaitable["Held"]]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let inline tasks work in a folder that can be looked at."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(folder: Path) -> list[Path]:
    """List what is in a folder."""
    return list(folder.iterdir())


async def test_a_task_finds_its_files_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    file = tmp_path / "source.csv"
    file.write_text("a,b\n1,2\n")
    tasks = InlineTasks(SubprocessRunner())
    asked = {"input": "in/file", "rows": 5}
    outcome = await tasks.run(WORKSPACE, "ade_engine.entry.preview", asked, {"in/file": file})
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"]["rows"] == [["a", "b"], ["1", "2"]]
    assert left(scratch) == [file]


async def test_an_inline_task_that_takes_too_long_is_killed(scratch: Path) -> None:
    outcome = await InlineTasks(ROGUE, limits=SHORT).run(WORKSPACE, ENTRY, {"do": "spin"}, {})
    assert outcome.error is not None
    assert outcome.error.code == "TIMED_OUT"
    assert left(scratch) == []


async def test_an_abandoned_inline_task_is_killed(scratch: Path) -> None:
    pids: list[int] = []

    class Watched(SubprocessRunner):
        def start(self, assignment, tell):
            running = super().start(assignment, tell)
            pids.append(running._child.pid)
            return running

    tasks = InlineTasks(Watched(command=ROGUES))
    asking = asyncio.create_task(tasks.run(WORKSPACE, ENTRY, {"do": "spin"}, {}))
    await aeventually(lambda: pids)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await aeventually(lambda: not is_alive(pids[0]))


class Held:
    """Hold a slot for a workspace until it is let go."""

    def __init__(self, slots: FairSlots, workspace_id: str) -> None:
        self.runs = False
        self._over = asyncio.Event()
        self.task = asyncio.create_task(self._hold(slots, workspace_id))

    async def _hold(self, slots: FairSlots, workspace_id: str) -> None:
        async with slots.slot(workspace_id):
            self.runs = True
            await self._over.wait()

    async def let_go(self) -> None:
        """Give the slot back."""
        self._over.set()
        await self.task


@pytest.fixture
async def hold() -> AsyncIterator[Callable[..., Awaitable[Held]]]:
    """Hold slots until the test ends."""
    held: list[Held] = []

    async def make(slots: FairSlots, workspace_id: str) -> Held:
        held.append(Held(slots, workspace_id))
        await asyncio.sleep(0)  # it runs now, or waits
        return held[-1]

    yield make
    for one in held:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in held), return_exceptions=True)


async def test_one_workspace_cannot_hold_all_slots(hold: Hold) -> None:
    slots = FairSlots(3)
    mine = [await hold(slots, "mine") for _ in range(5)]
    assert [one.runs for one in mine] == [True, True, False, False, False]
    assert (await hold(slots, "yours")).runs


async def test_a_single_slot_is_for_everyone(hold: Hold) -> None:
    slots = FairSlots(1)
    mine, yours = await hold(slots, "mine"), await hold(slots, "yours")
    assert (mine.runs, yours.runs) == (True, False)
    await mine.let_go()
    await asyncio.sleep(0)
    assert yours.runs


async def test_workspaces_take_turns(hold: Hold) -> None:
    slots = FairSlots(1)
    running = await hold(slots, "first")
    mine = [await hold(slots, "mine") for _ in range(3)]
    yours = [await hold(slots, "yours") for _ in range(2)]
    order = []
    for _ in range(5):
        await running.let_go()
        await asyncio.sleep(0)
        (running,) = [one for one in (*mine, *yours) if one.runs and not one.task.done()]
        order.append("mine" if running in mine else "yours")
    assert order == ["mine", "yours", "mine", "yours", "mine"]


async def test_a_workspace_with_too_many_waiting_is_rejected_and_others_are_not(hold: Hold) -> None:
    slots = FairSlots(2)
    for _ in range(1 + WAITING_PER_WORKSPACE_MAX):
        await hold(slots, "mine")
    with pytest.raises(Unavailable, match="of this workspace are waiting; try again"):
        await hold_now(slots, "mine")
    assert (await hold(slots, "yours")).runs
    waiting = await hold(slots, "yours")
    assert not waiting.task.done()


async def test_too_many_waiting_in_all_are_rejected(hold: Hold) -> None:
    slots = FairSlots(1)
    for number in range(1 + WAITING_MAX):
        await hold(slots, f"workspace {number}")
    with pytest.raises(Unavailable, match="are waiting; try again"):
        await hold_now(slots, "one more")


async def hold_now(slots: FairSlots, workspace_id: str) -> None:
    async with asyncio.timeout(10), slots.slot(workspace_id):
        raise AssertionError("it was let in")


async def test_one_that_stops_waiting_leaves_its_place(hold: Hold) -> None:
    slots = FairSlots(1)
    first = await hold(slots, "mine")
    gone, after = await hold(slots, "mine"), await hold(slots, "yours")
    gone.task.cancel()
    await asyncio.wait([gone.task])
    await first.let_go()
    await asyncio.sleep(0)
    assert after.runs


async def test_a_slot_that_is_granted_to_one_who_leaves_goes_to_the_next(hold: Hold) -> None:
    slots = FairSlots(1)
    async with slots.slot("mine"):
        leaving, after = await hold(slots, "mine"), await hold(slots, "yours")
    leaving.task.cancel()  # granted, and not awake yet
    await asyncio.wait([leaving.task])
    assert not leaving.runs
    await asyncio.sleep(0)
    assert after.runs


async def test_the_tasks_of_two_workspaces_run_side_by_side() -> None:
    tasks = InlineTasks(ROGUE, at_once=2, limits=SHORT)
    crowd = [asyncio.create_task(tasks.run("mine", ENTRY, {"do": "spin"}, {})) for _ in range(5)]
    mine = asyncio.gather(*crowd)
    await tasks.run("yours", ENTRY, {"do": "spin"}, {})
    assert sum(one.done() for one in crowd) <= 2  # it did not wait for all of them
    mine.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)


async def test_where_code_is_refused_no_inline_task_is_run() -> None:
    tasks = InlineTasks(SubprocessRunner(refusal="Other people's code is refused here."))
    with pytest.raises(Unavailable, match="refused"):
        await tasks.run(WORKSPACE, "ade_engine.entry.preview", {}, {})
