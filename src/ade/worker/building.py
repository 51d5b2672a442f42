"""One build, from its claim to its end: read, resolve, install, activate, record."""

import asyncio
import contextlib
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from ade.app.catalogue import Catalogue
from ade.artifacts import Blobs
from ade.domain.errors import AdeError, NotFound, Unavailable
from ade.domain.job import Status
from ade.domain.lease import MICROSECONDS
from ade.domain.limits import Limits
from ade.domain.outcome import Category, JobError, Outcome, located
from ade.environments.activation import ActivationFolder, Log
from ade.environments.failure import (
    BuildFailed,
    broken,
    files_gone,
    lost,
    spelled,
    too_long,
    unwalled,
)
from ade.environments.install import install, workshop
from ade.environments.requirements import FILE, read_requirements
from ade.environments.resolve import resolve
from ade.environments.tool import Tool
from ade.kernel import Kernel
from ade.kinds.normalize import ENGINE
from ade.sandbox.spec import RunSpec
from ade.sandbox.stack_location import ANSWER_SECONDS
from ade.settings import Settings
from ade.store.rows import Build, BuildHeld, File, Version
from ade.telemetry import metrics
from ade.worker.job_files import place_file
from ade.worker.runner import Runner, see_to_the_end

ENTRY = "ade_engine.entry.activate"
FINISH_AGAIN_SECONDS = 0.5
ACTIVATE_TRIES = 3
PRINTED_CHARS_MAX = 20_000
NOTHING_NEEDED = "requirements.txt names no packages: nothing is installed."
log = structlog.get_logger()


@dataclass(slots=True)
class Made:
    """Hold what a build came to, as far as it came."""

    status: str = "failed"
    error: JobError | None = None
    environment: str | None = None
    packages: list[str] = field(default_factory=list)
    hooks: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)

    def fail(self, error: JobError) -> None:
        """Note why it failed."""
        self.status, self.error = "failed", error
        self.diagnostics.append({"level": "error", **error.as_dict()})


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
        self._runner = runner
        self._settings = settings
        self._clock = kernel.store.clock
        self._look = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._folder: ActivationFolder | None = None
        self._log: Log | None = None
        self._is_lost = False
        self._is_put_back = False
        self._step = "reading the configuration"
        self._over_at = 0.0

    # --- what the builder does to it ------------------------------------------------------------

    def look(self) -> None:
        """Ask the database now whether the lease still holds."""
        self._look.set()

    def put_back(self) -> None:
        """Kill what is under way, and leave the build to another."""
        self._is_put_back = True
        if self._work is not None:
            self._work.cancel()

    def _lose(self) -> None:
        self._is_lost = True
        if self._work is not None:
            self._work.cancel()

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
                if self._log is not None:
                    self._log.close()

    async def _make(self) -> Made | None:
        """Work against the clock; None if the work was broken off."""
        made = Made()
        began = time.monotonic()
        self._over_at = began + self._settings.build_timeout_seconds
        self._work = asyncio.create_task(self._steps(made))
        if self._is_lost or self._is_put_back:
            self._work.cancel()
        try:
            async with asyncio.timeout(self._settings.build_timeout_seconds):
                await self._work
        except TimeoutError:
            made.fail(too_long(self._settings.build_timeout_seconds, self._step))
        except asyncio.CancelledError:
            if not (self._is_lost or self._is_put_back):
                raise
            return None
        metrics.built(made.status, time.monotonic() - began)
        return made

    async def _steps(self, made: Made) -> None:
        """Do one step after the other; what goes wrong is noted, never raised."""
        try:
            version = await self._version()
            self._folder = ActivationFolder(version, self._settings)
            if self.build.losses >= self._settings.retry_max_attempts:
                raise lost(self.build.losses)  # before a new log: the last one may say why
            self._log = await asyncio.to_thread(self._folder.begin)
            async with workshop(self._settings) as folder:
                tool = Tool(self._settings, self._log.say)
                await self._install(version, made, tool, folder)
                self._step = "running on_activate"
                await self._activate(version, made, folder)
        except BuildFailed as error:
            made.fail(error.error)
        except Unavailable as error:
            made.fail(broken(error.detail))
        except AdeError as error:
            made.fail(JobError(Category.VALIDATION_ERROR, error.code.upper(), error.detail))
        except OSError as error:
            log.exception("build could not be made")
            reason = error.strerror or type(error).__name__
            made.fail(broken(f"The builder could not do its work: {reason}."))
        except Exception:
            log.exception("build could not be made")
            made.fail(broken("The builder failed; its log says more."))

    async def _version(self) -> Version:
        if self.build.version_id is None:
            raise files_gone("The build names no version of its configuration.")
        return await self._library.find_version(self.build.workspace_id, self.build.version_id)

    async def _install(self, version: Version, made: Made, tool: Tool, folder: Path) -> None:
        requirements = await asyncio.to_thread(self._requirements, version)
        if not requirements:
            tool.log(NOTHING_NEEDED)
            return
        self._step = "resolving requirements.txt"
        lock = await resolve(requirements, tool, folder)
        made.packages = lock.packages
        if lock.text:
            self._step = "installing packages"
            made.environment = await install(lock, tool, folder)
        else:
            tool.log("The engine has all of these packages itself.")

    def _requirements(self, version: Version) -> list[str]:
        found = [file for file in version.files if file.path == FILE]
        if not found:
            return []
        with self._blobs.open(found[0].digest) as stream:
            return read_requirements(stream.read())

    # --- activate -------------------------------------------------------------------------------

    async def _activate(self, version: Version, made: Made, folder: Path) -> None:
        """Load the package and run its hooks behind the walls."""
        if self._runner.refusal is not None:
            raise unwalled(self._runner.refusal)
        files = await asyncio.to_thread(self._lay_out, version, folder / "activation")
        spec = RunSpec(
            entry=ENTRY,
            inputs={"config": "config"},
            limits=self._limits(),
            folder=folder / "activation",
            files=files,
            environment=made.environment,
            preload=ENGINE,
        )
        for tries in range(1, ACTIVATE_TRIES + 1):
            running = self._runner.start(spec, lambda progress: None)
            outcome, timed_out = await see_to_the_end(running, self._time_for_hooks())
            if timed_out:
                timeout_seconds = self._settings.build_timeout_seconds
                late = too_long(timeout_seconds, self._step)
                raise BuildFailed(located(late, outcome.location))
            if not _is_ours(outcome) or tries == ACTIVATE_TRIES:
                break
            log.warning("activation is tried again", code=outcome.error and outcome.error.code)
        self._judge(outcome, made)

    def _time_for_hooks(self) -> float:
        """Return what is left of the build's time, less what it takes to say where a hook was."""
        left = self._over_at - time.monotonic()
        return max(left - 2 * ANSWER_SECONDS, left / 2, 0)

    def _lay_out(self, version: Version, folder: Path) -> dict[str, Path]:
        folder.mkdir()
        names = [f"config/{file.path}" for file in version.files]
        places = self._blobs.abreast(self._place, version.files)
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

    def _judge(self, outcome: Outcome, made: Made) -> None:
        outputs = (outcome.result or {}).get("outputs", {})
        said = outputs.get("result_json")
        told = said if isinstance(said, dict) else {}
        printed = f"{outputs.get('stdout', '')}{outputs.get('stderr', '')}"
        made.hooks = {
            "status": "succeeded" if outcome.error is None else "failed",
            "annotations": told.get("annotations", []),
            "fields": told.get("fields", []),
            "warnings": told.get("warnings", []),
            "diagnostics": [outcome.error.as_dict()] if outcome.error is not None else [],
            "output": printed[-PRINTED_CHARS_MAX:],
            "isolation": list(outcome.isolation),
            "resource_usage": outcome.usage,
        }
        for warning in told.get("warnings", []):
            made.diagnostics.append({"level": "warning", **_as_diagnostic(warning)})
        if outcome.error is None and outcome.status is Status.SUCCEEDED:
            made.status = "ready"
        elif outcome.error is not None:
            message = f"The configuration could not be activated: {outcome.error.message}"
            made.fail(replace(outcome.error, message=message))
        else:
            made.fail(broken("The configuration could not be activated."))

    # --- record ---------------------------------------------------------------------------------

    def _result(self, made: Made) -> dict[str, Any]:
        return {
            "build_id": self.build.id,
            "attempt": self.build.fence,
            "status": made.status,
            "python_executable": sys.executable,
            "environment": made.environment,
            "packages": made.packages,
            "started_at": (self.build.started_at or 0) / MICROSECONDS,
            "finished_at": self._clock.now_us() / MICROSECONDS,
            "diagnostics": made.diagnostics,
        }

    def _write(self, made: Made) -> None:
        """Write the activation folder; the record does not hang on it."""
        if self._log is not None and made.error is not None:
            self._log.say(made.error.message)
        if self._folder is None:
            return
        try:
            self._folder.finish(self._result(made), made.packages, made.hooks)
        except OSError as error:
            log.warning("activation folder not written", reason=error.strerror)

    async def _record(self, made: Made) -> Build | None:
        """Record the end; while the database is away, try again as long as the lease is trusted."""
        environment = made.environment if made.status == "ready" else None
        error_text = None if made.error is None else spelled(made.error)
        await asyncio.to_thread(self._write, made)
        while not self._is_lost and self._trust_left() > 0:
            try:
                recorded = await self._library.finish_build(
                    self._held, made.status, error=error_text, environment=environment
                )
            except Exception as error:
                log.warning("end not recorded yet", reason=type(error).__name__)
                await asyncio.sleep(FINISH_AGAIN_SECONDS)
                continue
            if recorded:
                log.info("build ended", status=made.status, code=made.error and made.error.code)
                return self.build._replace(
                    status=made.status, error=error_text, environment=environment
                )
            break
        metrics.fence_rejected("build")
        log.warning("build discarded", reason="lease lost or build cancelled")
        return None

    # --- keep -----------------------------------------------------------------------------------

    def _trust_left(self) -> float:
        return self._trusted_until - self._clock.monotonic()

    async def _keep(self) -> None:
        """Renew until it ends; a lease that is lost, or no longer trusted, ends the work first."""
        rule = self._kernel.rules.lease
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


def _is_ours(outcome: Outcome) -> bool:
    """Tell whether the sandbox failed, and not what ran in it."""
    return outcome.error is not None and outcome.error.category is Category.INTERNAL_ERROR


def _as_diagnostic(warning: Any) -> dict[str, Any]:
    return warning if isinstance(warning, dict) else {"message": str(warning)[:500]}
