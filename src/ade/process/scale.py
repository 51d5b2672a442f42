"""Keep pilots on an engine, until a signal stops it; pilots go on."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import structlog

from ade.agents.block_rows import block_prefix
from ade.agents.choose_launcher import choose_launcher
from ade.agents.pilot_output import remove_old_output
from ade.agents.scale_config import ScaleConfig
from ade.agents.scaler import Scaler, ScalerRule
from ade.domain.errors import AdeError
from ade.kinds import load_kinds
from ade.settings import Settings
from ade.store.migrate import upgrade
from ade.store.session import Session

TIDY_SECONDS = 3600.0
log = structlog.get_logger()


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
        tidying = asyncio.create_task(_tidy_for_ever(store, scaling.name, folder), name="tidy")
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
        tidying.cancel()
        await asyncio.gather(tidying, return_exceptions=True)
    finally:
        await asyncio.to_thread(store.close)


async def _tidy_for_ever(store: Session, name: str, folder: Path) -> None:
    """Remove old files of pilots, once an hour."""
    while True:
        try:
            rows = await store.aread(lambda reading: reading.scaling.live_blocks(name))
            live = {row.name for row in rows}
            await asyncio.to_thread(remove_old_output, folder, block_prefix(name), live)
        except (AdeError, OSError) as error:
            log.warning("cannot remove old files of pilots", reason=str(error))
        await asyncio.sleep(TIDY_SECONDS)
