"""Draining the blocks of a scaler, which needs its engine only."""

import os
import sys
from pathlib import Path

from tests.processes import aeventually

from ade.agents.block_rows import block_prefix
from ade.agents.launchers.local import LocalLauncher
from ade.agents.scale_config import parse_scale_config
from ade.process.scale import drain
from ade.settings import Settings

PILOT = "import signal; signal.signal(15, lambda *_: exit(0)); print('up'); signal.pause()"
SECONDS = 60.0


async def start_pilot(scaler: str, folder: Path) -> LocalLauncher:
    """Start a pilot, and wait until it heeds signals."""
    launcher, block = LocalLauncher(block_prefix(scaler), folder), f"{block_prefix(scaler)}1"
    await launcher.launch(block, [sys.executable, "-u", "-c", PILOT, "--block", block])
    await aeventually(lambda: "up" in (folder / f"{block}.log").read_text(), SECONDS)
    return launcher


async def until_gone(launcher: LocalLauncher) -> None:
    async def is_gone() -> bool:
        return await launcher.poll() == []

    await aeventually(is_gone, SECONDS)


async def test_the_pilots_of_a_scaler_are_told_to_leave_and_those_of_others_stay(
    tmp_path: Path,
) -> None:
    name = f"mine{os.getpid()}"
    config = parse_scale_config(f'name = "{name}"\n[pilot]\nfolder = "{tmp_path}"')
    ours = await start_pilot(name, tmp_path)
    others = await start_pilot(f"theirs{os.getpid()}", tmp_path)
    try:
        assert await drain(Settings(storage_data_dir=tmp_path), config) == (0, 1)
        await until_gone(ours)
        assert len(await others.poll()) == 1
    finally:
        for launcher in (ours, others):
            await launcher.drain([block.id for block in await launcher.poll()])
            await until_gone(launcher)
