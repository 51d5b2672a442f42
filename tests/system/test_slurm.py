"""Pilots on a real Slurm: a burst through `ade scale`, and what the launcher asks of the engine."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import aeventually, eventually
from tests.slurm_cluster import PARTITION, SlurmCluster, missing, running_cluster
from tests.system.scaling import ended_blocks, pilot_file
from tests.system.server import Start

from ade.agents.launchers.port import Block, BlockRefused, EngineAway
from ade.agents.launchers.slurm import SlurmLauncher, SlurmOrder

pytestmark = pytest.mark.slow
SECONDS = 240.0
FILE = """
name = "{name}"
engine = "slurm"
tick_seconds = 0.5
[pilot]
env_file = "{env_file}"
folder = "{folder}"
slots = 2
idle_exit_seconds = 2
[policy]
max_blocks = 2
hold_seconds = 0
[slurm]
partition = "{partition}"
"""
# It notes that it drains, and whether the process that it runs was signalled with it.
PILOT = """
import os, signal, subprocess, sys, time
name = sys.argv[1]
loop = f"trap 'touch {name}.signalled' TERM; touch {name}.up; while :; do sleep 0.1; done"
child = subprocess.Popen(["sh", "-c", loop])
def drain(*_):
    time.sleep(1)
    child.kill()
    with open(f"{name}.part", "w") as note:
        note.write(str(os.path.exists(f"{name}.signalled")))
    os.rename(f"{name}.part", f"{name}.drained")
    sys.exit()
signal.signal(signal.SIGTERM, drain)
while True:
    signal.pause()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    if absent := missing():
        pytest.skip(f"Slurm is not installed ({', '.join(absent)}); scripts/test-programs does it")
    with running_cluster() as running:
        yield running


def launcher(folder: Path, *options: str) -> SlurmLauncher:
    """Make a launcher whose blocks have the folder's name in theirs."""
    order = SlurmOrder(3600, 5, str(folder), PARTITION, options)
    return SlurmLauncher(f"ade-{folder.name}-", order)


def test_a_burst_brings_pilots_and_they_leave(
    cluster: SlurmCluster, start_on_postgres: Start, tmp_path: Path
) -> None:
    start = start_on_postgres
    name, file = f"b{os.getpid()}", tmp_path / "scale.toml"
    env_file = pilot_file(tmp_path, start)
    folder = tmp_path / "pilots"
    file.write_text(
        FILE.format(name=name, env_file=env_file, folder=folder, partition=PARTITION),
    )
    server = start.server_without_worker(ADE_QUEUE_SIZE="0")
    jobs = [server.submit(value=number, sleep_ms=300) for number in range(20)]
    scaler = start.command("scale", "--config", str(file), **cluster.environment)
    scaler.said("is ready: Slurm, partition short")
    ended = [server.ended_job(job, SECONDS) for job in jobs]
    assert {(job["status"], job["attempt"]) for job in ended} == {("succeeded", 1)}
    eventually(lambda: not cluster.jobs(), SECONDS)
    blocks = ended_blocks(start, SECONDS)
    assert len(blocks) == 2
    assert {one["pilot"] for one in blocks} == {"left"}
    assert scaler.stop(SECONDS) == 0
    key = start.environment()["ADE_DATABASE_URL"]
    assert not [one for one in folder.iterdir() if key in one.read_text()]


async def test_blocks_are_found_by_name_drained_alone_and_never_ordered_twice(
    cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    one, later = launcher(tmp_path), launcher(tmp_path, "--begin=now+1hour")
    first, second = f"ade-{tmp_path.name}-1", f"ade-{tmp_path.name}-2"
    pilot = [sys.executable, "-c", PILOT, f"{tmp_path}/{first}"]
    number = await one.launch(first, pilot)
    assert await one.launch(first, pilot) == number
    waiting = await later.launch(second, pilot)
    await aeventually((tmp_path / f"{first}.up").exists, SECONDS)
    restarted = launcher(tmp_path)
    found = {block.name: block for block in await restarted.poll()}
    assert found[first] == Block(first, number, is_started=True, detail="running")
    assert (found[second].id, found[second].is_started) == (waiting, False)
    assert await SlurmLauncher("ade-else-", SlurmOrder(60, 5, "/")).poll() == []

    await restarted.cancel([number, waiting])  # only those that wait
    assert [block.name for block in await restarted.poll()] == [first]
    await restarted.drain([number])
    drained = tmp_path / f"{first}.drained"
    await aeventually(drained.exists, SECONDS)
    assert drained.read_text() == "False"

    async def is_gone() -> bool:
        return await restarted.poll() == []

    await aeventually(is_gone, SECONDS)


async def test_a_controller_that_is_down_is_no_answer_and_its_jobs_are_there_afterwards(
    cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    one = launcher(tmp_path, "--begin=now+1hour")
    name = f"ade-{tmp_path.name}-1"
    number = await one.launch(name, ["true"])
    cluster.stop_controller()
    try:
        with pytest.raises(EngineAway):
            await one.poll()
    finally:
        cluster.start_controller()
    assert [block.id for block in await one.poll()] == [number]
    await one.cancel([number])
    assert await one.poll() == []


async def test_an_order_that_slurm_refuses_is_told_from_no_answer(
    cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BlockRefused, match="invalid partition"):
        await launcher(tmp_path, "--partition=none").launch(f"ade-{tmp_path.name}-1", ["true"])
