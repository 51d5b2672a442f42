"""Blocks as processes: real ones, adopted by name, signalled only if they are ours."""

import sys
from pathlib import Path

import pytest
from tests.processes import aeventually

from ade.agents.launchers.local import LocalLauncher
from ade.agents.launchers.port import BlockRefused

SLEEP = "import signal, time; signal.signal(15, lambda *_: exit(0)); print('up'); time.sleep(600)"


def pilot(name: str) -> list[str]:
    return [sys.executable, "-u", "-c", SLEEP, "--block", name]


async def is_up(folder: Path, name: str) -> None:
    await aeventually(lambda: "up" in (folder / f"{name}.log").read_text(), 60)


async def test_a_block_is_adopted_by_its_prefix_and_ends_when_told(tmp_path: Path) -> None:
    prefix = f"ade-{tmp_path.name}-"
    first, other = LocalLauncher(prefix, tmp_path), LocalLauncher("ade-other-", tmp_path)
    number = await first.launch(f"{prefix}1", pilot(f"{prefix}1"))
    try:
        await is_up(tmp_path, f"{prefix}1")
        restarted = LocalLauncher(prefix, tmp_path)
        assert [(one.name, one.id) for one in await restarted.poll()] == [(f"{prefix}1", number)]
        assert await other.poll() == []
        await other.drain([number])  # it is not one of its blocks
        assert len(await restarted.poll()) == 1
    finally:
        await LocalLauncher(prefix, tmp_path).cancel([number])

    async def is_gone() -> bool:
        return await first.poll() == []

    await aeventually(is_gone, 60)


async def test_a_command_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BlockRefused, match="No such file"):
        await LocalLauncher("ade-x-", tmp_path).launch("ade-x-1", ["/nowhere/ade"])
