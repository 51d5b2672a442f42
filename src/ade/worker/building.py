"""One build, from its claim to its end: read, resolve, install, activate, record."""

import asyncio
import contextlib
from dataclasses import asdict
from pathlib import Path

import structlog

from ade.app.catalogue import Catalogue
from ade.domain.errors import NotFound
from ade.domain.job import Status
from ade.domain.lease import MICROSECONDS
from ade.domain.limits import Limits
from ade.domain.outcome import JobError, Outcome
from ade.environments.activation import ActivationFolder
from ade.environments.failure import error_json, files_gone, lost
from ade.environments.install import workshop
from ade.kernel import Kernel
from ade.sandbox.spec import RunSpec
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import Build, BuildHeld, File, Version
from ade.telemetry import metrics
from ade.worker.build_runner import (
    ENTRY,
    PACKAGE,
    BuildInputs,
    BuildReport,
    BuildRunner,
    failure_of,
    write_report,
)
from ade.worker.job_files import place_file
from ade.worker.runner import RunHandle, Runner, see_to_the_end

FINISH_AGAIN_SECONDS = 0.5
log = structlog.get_logger()


class Building:
    """Hold one claimed build and see it through."""

    def __init__(
        self,
        build: Build,
        trusted_until: float,
        *,
        kernel: Kernel,
        library: Catalogue,
        blobs: Blobs,
        runner: Runner,
        settings: Settings,
    ) -> None:
        self.build = build
        self._held = BuildHeld(build.workspace_id, build.id, build.fence)
        self._trusted_until = trusted_until
        self._kernel = kernel
        self._library = library
        self._blobs = blobs
        self._runner = BuildRunner(runner, settings)
        self._settings = settings
        self._clock = kernel.store.clock
        self._look = asyncio.Event()
        self._inputs: BuildInputs | None = None
        self._running: RunHandle | None = None
        self._is_lost = False
        self._is_put_back = False

    # --- what the builder does to it ------------------------------------------------------------

    def look(self) -> None:
        """Ask the database now whether the lease still holds."""
        self._look.set()

    def put_back(self) -> None:
        """Kill what is under way, and leave the build to another."""
        self._is_put_back = True
        if self._running is not None:
            self._running.kill()

    def _lose(self) -> None:
        self._is_lost = True
        if self._running is not None:
            self._running.kill()

    # --- its life -------------------------------------------------------------------------------

    async def see_through(self) -> Build | None:
        """Make the build and record its end; None if it is another's, or put back."""
        with structlog.contextvars.bound_contextvars(
            build_id=self.build.id, attempt=self.build.fence
        ):
            keeping = asyncio.create_task(self._keep())
            try:
                made = await self._make()
                if self._is_lost:
                    log.warning("build given up", reason="lease lost or build cancelled")
                    return None
                if made is None:
                    await self._library.release_build(self._held)
                    log.info("build put back")
                    return None
                return await self._record(made)
            finally:
                keeping.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await keeping

    async def _make(self) -> Outcome | None:
        """Prepare and run the build; None if it was broken off."""
        if self._is_broken_off():
            return None
        async with workshop(self._settings) as folder:
            try:
                spec = await self._prepare(folder)
            except Exception as error:
                return await self._failed(failure_of(error))
            self._running = self._runner.start(spec, lambda progress: None)
            if self._is_broken_off():
                self._running.kill()
            outcome, _ = await see_to_the_end(self._running, spec.limits.timeout_ms / 1000)
        return None if self._is_broken_off() else outcome

    def _is_broken_off(self) -> bool:
        return self._is_lost or self._is_put_back

    async def _prepare(self, folder: Path) -> RunSpec:
        if self.build.version_id is None:
            raise files_gone("The build names no version of its configuration.")
        version = await self._library.find_version(self.build.workspace_id, self.build.version_id)
        self._inputs = BuildInputs(
            self.build.id, self.build.fence, version.configuration_id, version.sequence
        )
        if self.build.losses >= self._settings.retry_max_attempts:
            raise lost(self.build.losses)  # before a new log: the last one may say why
        return RunSpec(
            entry=ENTRY,
            inputs=asdict(self._inputs),
            limits=self._limits(),
            folder=folder,
            files=await asyncio.to_thread(self._lay_out, version, folder),
        )

    def _lay_out(self, version: Version, folder: Path) -> dict[str, Path]:
        names = [f"{PACKAGE}/{file.path}" for file in version.files]
        places = self._blobs.concurrently(self._place, version.files)
        return {
            name: place_file(place, folder / name, copied=True)
            for name, place in zip(names, places, strict=True)
        }

    def _place(self, file: File) -> Path:
        try:
            return self._blobs.existing(file.digest)
        except NotFound:
            message = f"The bytes of {file.path} are not in the storage any more."
            raise files_gone(message) from None

    def _limits(self) -> Limits:
        settings = self._settings
        return Limits(
            timeout_ms=int(settings.build_timeout_seconds * 1000),
            cpu_ms=settings.worker_cpu_seconds * 1000,
            memory_mb=settings.worker_mem_mb,
            max_output_kb=settings.max_output_kb,
            max_artifacts=0,
        )

    async def _failed(self, error: JobError) -> Outcome:
        """Say why the build could not be started, also in the activation folder."""
        report = BuildReport()
        report.fail(error)
        if self._inputs is not None:
            folder = ActivationFolder(self._inputs, self._settings)
            times = {"started_at": (self.build.started_at or 0) / MICROSECONDS}
            times["finished_at"] = self._clock.now_us() / MICROSECONDS
            with contextlib.suppress(OSError):  # the record does not depend on the folder
                await asyncio.to_thread(folder.path.mkdir, parents=True, exist_ok=True)
                await asyncio.to_thread(write_report, folder, self._inputs, report, times)
        outputs = {"result_json": asdict(report)}
        return Outcome(Status.FAILED, {"outputs": outputs}, error)

    # --- record ---------------------------------------------------------------------------------

    async def _record(self, outcome: Outcome) -> Build | None:
        """Record the end; while the database is away, try again as long as the lease is trusted."""
        report = (outcome.result or {})["outputs"]["result_json"]
        status, environment = report["status"], report["environment"]
        error_text = None if outcome.error is None else error_json(outcome.error)
        while not self._is_lost and self._trust_left() > 0:
            try:
                recorded = await self._library.finish_build(
                    self._held, status, error=error_text, environment=environment
                )
            except Exception as error:
                log.warning("end not recorded yet", reason=type(error).__name__)
                await asyncio.sleep(FINISH_AGAIN_SECONDS)
                continue
            if recorded:
                log.info("build ended", status=status, code=outcome.error and outcome.error.code)
                return self.build._replace(status=status, error=error_text, environment=environment)
            break
        metrics.fence_rejected("build")
        log.warning("build discarded", reason="lease lost or build cancelled")
        return None

    # --- keep -----------------------------------------------------------------------------------

    def _trust_left(self) -> float:
        return self._trusted_until - self._clock.monotonic()

    async def _keep(self) -> None:
        """Renew until it ends; a lease that is lost, or no longer trusted, ends the work first."""
        rule = self._kernel.settings.lease
        while True:
            await self._wait(min(rule.renew_seconds, max(self._trust_left(), 0.01)))
            asked = self._clock.monotonic()
            try:
                async with asyncio.timeout(max(self._trust_left(), 0)):
                    kept = await self._library.renew_build(self._held, rule.lease_us)
            except Exception as error:
                log.warning("cannot renew", reason=type(error).__name__)
                if self._trust_left() <= 0:
                    self._lose()
                    return
                continue
            if not kept:
                self._lose()
                return
            self._trusted_until = rule.trusted_until(asked)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._look.wait()
        self._look.clear()
