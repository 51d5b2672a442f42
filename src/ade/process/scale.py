"""Keep pilots on an engine, until a signal stops it; pilots go on."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from ade.agents.choose_launcher import choose_launcher
from ade.agents.scale_config import ScaleConfig
from ade.agents.scaler import Scaler, ScalerRule
from ade.kinds import load_kinds
from ade.settings import Settings
from ade.store.migrate import upgrade
from ade.store.session import Session


def pilots_folder(settings: Settings, config: ScaleConfig) -> Path:
    """Return the folder of the pilots' output."""
    given = config.pilot.folder
    return Path(given) if given else (Path(settings.storage_data_dir) / "pilots").absolute()


async def drain(settings: Settings, config: ScaleConfig) -> tuple[int, int]:
    """Cancel blocks that wait and let the pilots of others leave; return how many of each."""
    launcher = choose_launcher(config, pilots_folder(settings, config))
    blocks = await launcher.poll()
    waiting = [block.id for block in blocks if not block.is_started]
    started = [block.id for block in blocks if block.is_started]
    await launcher.cancel(waiting)
    await launcher.drain(started)
    return len(waiting), len(started)


async def scale(settings: Settings, config: ScaleConfig, ready: Callable[[str], None]) -> None:
    """Decide and order until SIGTERM or SIGINT; a second one does not wait for the engine."""
    store = Session(settings.database_url, timeout_seconds=settings.database_timeout_seconds)
    try:
        await store.aread(lambda reading: None)  # says in one line if there is no database
        await asyncio.to_thread(upgrade, settings.database_url)
        folder = pilots_folder(settings, config)
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        launcher = choose_launcher(config, folder)
        scaling = config.scaling
        rule = ScalerRule(
            scaling.name,
            scaling.engine,
            config.rule,
            config.timeout_seconds_max,
            scaling.tick_seconds,
            config.pilot.idle_exit_seconds,
        )
        kinds = frozenset(load_kinds().names())
        scaler = Scaler(store, launcher, rule, config.command, kinds)
        running = asyncio.create_task(scaler.run(), name="scaler")
        signals = 0

        def end() -> None:
            nonlocal signals
            signals += 1
            scaler.stop()
            if signals > 1:
                running.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end)
        ready(f"scaler {scaling.name} is ready: {launcher.describe()}")
        await asyncio.wait([running])
    finally:
        await asyncio.to_thread(store.close)
