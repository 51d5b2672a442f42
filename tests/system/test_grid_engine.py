"""Pilots on a real Grid Engine through Parsl: a burst, adoption, and an engine that is away."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.grid_engine import QUEUE, GridEngine, running_grid_engine, unusable
from tests.processes import aeventually, eventually
from tests.system.scaling import ended_blocks, pilot_file
from tests.system.server import Start

from ade.agents.launchers.parsl import ParslLauncher
from ade.agents.launchers.parsl_provider import parsl_launcher
from ade.agents.launchers.port import BlockRefused, EngineAway

pytest.importorskip("parsl", reason="the extra `parsl` is not installed")
pytestmark = pytest.mark.slow
SECONDS = 240.0
FILE = """
name = "{name}"
engine = "parsl"
tick_seconds = 1
[pilot]
env_file = "{env_file}"
folder = "{folder}"
slots = 2
idle_exit_seconds = 2
[policy]
max_blocks = 2
hold_seconds = 0
[parsl]
provider = "GridEngineProvider"
[parsl.options]
queue = "{queue}"
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[GridEngine]:
    if reason := unusable():
        pytest.skip(reason)
    with running_grid_engine() as running:
        yield running


def launcher(folder: Path, queue: str = QUEUE) -> ParslLauncher:
    """Make a launcher as `ade scale` does."""
    options = {"queue": queue}
    return parsl_launcher(
        "ade-a-", "GridEngineProvider", options, folder, timeout_seconds=60, walltime_seconds=3600
    )


def test_a_burst_brings_pilots_and_they_leave(
    engine: GridEngine, start_on_postgres: Start, tmp_path: Path
) -> None:
    start = start_on_postgres
    file, folder = tmp_path / "scale.toml", tmp_path / "pilots"
    env_file = pilot_file(tmp_path, start)
    name = f"g{os.getpid()}"
    file.write_text(FILE.format(name=name, env_file=env_file, folder=folder, queue=QUEUE))
    server = start.server_without_worker(ADE_QUEUE_SIZE="0")
    jobs = [server.submit(value=number, sleep_ms=300) for number in range(20)]
    scaler = start.command("scale", "--config", str(file), **engine.environment)
    scaler.said("is ready: Parsl's GridEngineProvider")
    ended = [server.ended_job(job, SECONDS) for job in jobs]
    assert {(job["status"], job["attempt"]) for job in ended} == {("succeeded", 1)}
    eventually(lambda: not engine.jobs(), SECONDS)
    blocks = ended_blocks(start, SECONDS)
    assert len(blocks) == 2
    assert {one["pilot"] for one in blocks} == {"left"}
    assert scaler.stop(SECONDS) == 0
    url = start.environment()["ADE_DATABASE_URL"]
    assert not [one for one in folder.iterdir() if url in one.read_text()]


async def test_blocks_are_adopted_and_an_engine_that_is_away_has_not_lost_them(
    engine: GridEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BlockRefused, match=r"no such queue|does not exist|unknown"):
        await launcher(tmp_path, "none.q").launch("ade-a-0", ["true"])
    number = await launcher(tmp_path).launch("ade-a-1", ["sleep", "600"])
    one = launcher(tmp_path)

    async def is_started() -> bool:
        return [(b.name, b.id, b.is_started) for b in await one.poll()] == [
            ("ade-a-1", number, True)
        ]

    await aeventually(is_started, SECONDS)
    await one.cancel([number])  # it runs, and so it stays
    assert engine.jobs() == [number]
    engine.stop_master()
    try:
        with pytest.raises(EngineAway):
            await one.poll()
    finally:
        engine.start_master()
    await aeventually(is_started, SECONDS)
    engine.run("qdel", number)

    async def is_gone() -> bool:
        return await one.poll() == []

    await aeventually(is_gone, SECONDS)
