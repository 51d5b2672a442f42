"""Errands: bounded, turned away when there are too many, and nothing is left of them."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from tests.processes import aeventually, is_alive
from tests.unit.worker.bench import ROGUES

from ade.domain.errors import Unavailable
from ade.domain.limits import Limits
from ade.worker.errands import AT_ONCE, WAITING_MAX, Errands
from ade.worker.subprocess_runner import SubprocessRunner

SHORT = Limits(timeout_ms=500, cpu_ms=5000, memory_mb=256, max_output_kb=4, max_artifacts=0)
ROGUE = SubprocessRunner(command=ROGUES, stop_grace_seconds=0.2)
ENTRY = "rogues"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let errands work in a folder that can be looked at."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(folder: Path) -> list[Path]:
    """List what is in a folder."""
    return list(folder.iterdir())


async def test_an_errand_finds_its_files_and_leaves_nothing(scratch: Path, tmp_path: Path) -> None:
    file = tmp_path / "source.csv"
    file.write_text("a,b\n1,2\n")
    errands = Errands(SubprocessRunner())
    asked = {"input": "in/file", "rows": 5}
    outcome = await errands.run("ade_engine.entry.preview", asked, {"in/file": file})
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"]["rows"] == [["a", "b"], ["1", "2"]]
    assert left(scratch) == [file]


async def test_an_errand_that_takes_too_long_is_killed(scratch: Path) -> None:
    outcome = await Errands(ROGUE, SHORT).run(ENTRY, {"do": "spin"}, {})
    assert outcome.error is not None
    assert outcome.error.code == "TIMED_OUT"
    assert left(scratch) == []


async def test_an_errand_that_nobody_waits_for_is_killed(scratch: Path) -> None:
    pids: list[int] = []

    class Watched(SubprocessRunner):
        def start(self, assignment, tell):
            running = super().start(assignment, tell)
            pids.append(running._child.pid)
            return running

    errands = Errands(Watched(command=ROGUES))
    asking = asyncio.create_task(errands.run(ENTRY, {"do": "spin"}, {}))
    await aeventually(lambda: pids)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await aeventually(lambda: not is_alive(pids[0]))


async def test_too_many_errands_are_turned_away() -> None:
    errands = Errands(ROGUE, SHORT)
    asked = [
        asyncio.create_task(errands.run(ENTRY, {"do": "spin"}, {}))
        for _ in range(AT_ONCE + WAITING_MAX)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="try again"):
        await errands.run(ENTRY, {"do": "spin"}, {})
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_where_code_is_refused_no_errand_is_run() -> None:
    errands = Errands(SubprocessRunner(refusal="Other people's code is refused here."))
    with pytest.raises(Unavailable, match="refused"):
        await errands.run("ade_engine.entry.preview", {}, {})
