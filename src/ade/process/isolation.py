"""Choose how jobs are isolated on this machine: find the layers at start, and make the runner."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from ade.domain.errors import Unavailable
from ade.environments.environment import environment_of, folder_of
from ade.sandbox.child.plan import LANDLOCK
from ade.sandbox.folders import closed_to_others
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.probe import NONE, SandboxReport, probe
from ade.sandbox.runtime_environment import Environment, own_environment
from ade.sandbox.spec import WorkerBounds
from ade.settings import Settings
from ade.worker.runner import Runner
from ade.worker.sandbox_runner import SandboxRunner
from ade.worker.subprocess_runner import SubprocessRunner

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Isolation:
    """Hold the layers that were found, and the runner that uses them."""

    report: SandboxReport
    runner: Runner
    least: str

    @property
    def summary(self) -> str:
        """Describe in one line how jobs are isolated."""
        if self.runner.refusal is not None:
            return self.runner.refusal
        if self.report.level == NONE:
            return "ADE_SANDBOX=none: jobs run without isolation."
        weaker = [layer.name for layer in self.report.layers if layer.state != "up"]
        note = f"; weaker: {', '.join(weaker)}" if weaker else ""
        accepted = "; ADE_SANDBOX=none accepts less" if self.least == NONE else ""
        return f"Jobs run at level {self.report.level}{note}{accepted}."

    @property
    def is_degraded(self) -> bool:
        """Tell whether an operator should look at it."""
        return self.runner.refusal is not None or NONE in {self.report.level, self.least}


async def examine(settings: Settings) -> tuple[SandboxReport, str | None]:
    """Find which layers hold on this machine; return the report, and why it is not sufficient."""
    scratch = scratch_folder(settings)
    report = await probe(settings.sandbox_uid_base, scratch, settings.worker_nice)
    return report, None if report.meets(settings.sandbox) else _refusal(report, settings.sandbox)


@asynccontextmanager
async def isolated(settings: Settings) -> AsyncIterator[Isolation]:
    """Find the layers, and keep a pool of warm interpreters while the block runs."""
    scratch = scratch_folder(settings)
    report, refusal = await examine(settings)
    if report.found is None or refusal is not None:
        runner: Runner = SubprocessRunner(
            file_mb_max=settings.worker_fsize_mb,
            result_bytes_max=settings.result_max_kb * 1024,
            refusal=refusal,
            environment_of=lambda digest: environment_of(digest, settings),
        )
        log.warning("weak isolation", level=report.level, least=settings.sandbox)
        yield Isolation(report, runner, settings.sandbox)
        return
    pool = Pool(report.found, _rules(settings), scratch)
    try:
        pool.warm(own_environment())
        bounds = WorkerBounds(
            file_mb=settings.worker_fsize_mb,
            result_bytes=settings.result_max_kb * 1024,
            nice=settings.worker_nice,
        )
        log.debug("isolation", level=report.level)
        runner = SandboxRunner(
            pool=pool,
            bounds=bounds,
            environment_of=lambda digest: _environment(digest, settings, report.found),
        )
        yield Isolation(report, runner, settings.sandbox)
    finally:
        await pool.close()


def scratch_folder(settings: Settings) -> Path:
    """Choose the folder for jobs without namespaces: one that their users can reach.

    Only root can give jobs users of their own.
    """
    folder = Path(settings.storage_data_dir).resolve() / "scratch"
    is_own = os.geteuid() != 0
    return folder if is_own or _is_reachable(folder) else Path(tempfile.gettempdir())


def _is_reachable(folder: Path) -> bool:
    """Tell whether any user may pass through the folders above one."""
    return closed_to_others(folder.parents) is None


def _environment(digest: str, settings: Settings, layers: Layers | None) -> Environment:
    """Return the environment of a build; raise Unavailable if jobs' users cannot reach it."""
    found = environment_of(digest, settings)
    by_path = layers is not None and layers.level == LANDLOCK and layers.user_base is not None
    if by_path and not _is_reachable(folder_of(digest, settings)):
        raise Unavailable(
            "The users that jobs run as cannot reach the installed packages: let others pass"
            " through the folders above ADE_ACTIVATION_ENVS_DIR (chmod o+x), or choose another."
        )
    return found


def _rules(settings: Settings) -> PoolRules:
    return PoolRules(
        memory_mb_max=settings.sandbox_memory_mb,
        forks_per_zygote_max=settings.sandbox_jobs_max,
        job_mb=settings.worker_disk_mb,
        tmp_mb=settings.worker_tmp_mb,
        inodes=settings.worker_files_max,
        processes=settings.worker_processes_max,
        open_files=settings.worker_open_files_max,
        nice=settings.worker_nice,
        jobs_at_once=settings.max_concurrency,
    )


def _refusal(report: SandboxReport, least: str) -> str:
    have = (
        "no sandbox layer can be applied"
        if report.level == NONE
        else f"only level {report.level} is reached"
    )
    return (
        f"Untrusted code is refused here: {have}, and ADE_SANDBOX={least} requires more."
        f" {report.remedy} `ade doctor` lists the missing sandbox layers and the reasons."
    )
