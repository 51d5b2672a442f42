"""Choose the launcher of the engine that a file names."""

from pathlib import Path

from ade.agents.block_rows import block_prefix
from ade.agents.launchers.local import LocalLauncher
from ade.agents.launchers.parsl_provider import parsl_launcher
from ade.agents.launchers.port import Launcher
from ade.agents.launchers.slurm import SlurmLauncher, SlurmOrder
from ade.agents.scale_config import ScaleConfig


def choose_launcher(config: ScaleConfig, folder: Path) -> Launcher:
    """Make the launcher of a scaler; `folder` gets the output of its pilots."""
    prefix = block_prefix(config.scaling.name)
    if config.scaling.engine == "slurm":
        order = SlurmOrder(
            walltime_seconds=config.walltime_seconds,
            grace_seconds=config.pilot.drain_grace_seconds,
            folder=str(folder),
            partition=config.slurm.partition,
            options=tuple(config.slurm.options),
        )
        return SlurmLauncher(prefix, order)
    if config.scaling.engine == "parsl":
        return parsl_launcher(
            prefix,
            config.parsl.provider,
            config.parsl.options,
            folder,
            timeout_seconds=config.parsl.timeout_seconds,
            walltime_seconds=config.walltime_seconds,
        )
    return LocalLauncher(prefix, folder)
