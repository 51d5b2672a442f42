"""The work of a build: resolve and install the requirements, then activate the package.

The model. A build is started like a job, from a `RunSpec`: `inputs` are `BuildInputs`, `files` hold
the version's package below `config/`, and `limits.timeout_ms` bounds all of it. uv runs as a child
of this process, outside the sandbox, because it needs the network and writes environments that
builds share. The package itself is loaded, and its `on_activate` hooks are called, only in the
sandbox. The outcome's `result_json` is a `BuildReport`, and its `stdout` is the log, followed by
what the hooks printed. The activation folder of the version holds the same for people to read, and
the log while it grows.

    failure                                what happens
    -------------------------------------  ---------------------------------------------------------
    a requirement is refused or not met,   the outcome carries the error, in words for the author
    a hook raises, the package is invalid
    the sandbox itself fails               the activation is started again, at most ACTIVATE_TRIES
                                           times in all
    the time is over                       uv is killed, or the hooks are, after a moment to report
                                           their stack; the error names the step
    stop, kill                             uv or the hooks are killed, and nothing more is written
    the process dies                       uv dies with it; what was unfinished is never used
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from ade.domain.errors import AdeError, Unavailable
from ade.domain.job import Status
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome, located
from ade.domain.output import Stream
from ade.domain.units import KIB
from ade.environments.activation import ActivationFolder, Log
from ade.environments.failure import BuildFailed, broken, sandbox_unavailable, too_long
from ade.environments.install import install, workshop
from ade.environments.requirements import FILE, names_of, read_requirements
from ade.environments.resolve import resolve
from ade.environments.shared import SharedEnvironments
from ade.environments.tool import Tool
from ade.kinds.normalize import ENGINE
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.exit_status import stopped_error
from ade.sandbox.spec import RunSpec
from ade.settings import Settings
from ade.telemetry import metrics
from ade.worker.runner import RunHandle, Runner

ENTRY = "ade_engine.entry.activate"
PACKAGE = "config"
ACTIVATE_TRIES = 3
PRINTED_CHARS_MAX = 20_000
DIAGNOSTIC_CHARS_MAX = 500
STEPS = 3
NOTHING_NEEDED = "requirements.txt names no packages: nothing is installed."
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """Name the build, its attempt, and the version whose activation folder it writes."""

    build_id: str
    attempt: int
    configuration_id: str
    sequence: int


@dataclass(slots=True)
class BuildReport:
    """Hold the result of a build, as far as it got."""

    status: str = "failed"
    environment: str | None = None
    packages: list[str] = field(default_factory=list)
    hooks: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    python_executable: str = sys.executable

    def fail(self, error: JobError) -> None:
        """Note why it failed."""
        self.status, self.environment = "failed", None
        self.diagnostics.append({"level": "error", **error.as_dict()})


@dataclass(frozen=True, slots=True)
class BuildRunner:
    """Start builds; their hooks are started by the runner of jobs."""

    runner: Runner
    settings: Settings
    shared: SharedEnvironments | None = None

    @property
    def isolation(self) -> tuple[str, ...]:
        """Name the sandbox layers around the hooks."""
        return self.runner.isolation

    @property
    def refusal(self) -> str | None:
        """Return why hooks are not started here; None if they are."""
        return self.runner.refusal

    def start(self, spec: RunSpec, on_progress: OnProgress) -> "BuildRun":
        """Start a build."""
        return BuildRun(self.runner, self.settings, spec, on_progress, self.shared)


class BuildRun:
    """Control one build."""

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        spec: RunSpec,
        on_progress: OnProgress,
        shared: SharedEnvironments | None = None,
    ) -> None:
        self._runner = runner
        self._shared = shared
        self._settings = settings
        self._spec = spec
        self._on_progress = on_progress
        self._inputs = BuildInputs(**spec.inputs)
        self._folder = ActivationFolder(self._inputs, settings)
        self._began = time.monotonic()
        self._began_at = time.time()  # noqa: TID251 - a record for people
        self._report = BuildReport()
        self._error: JobError | None = None
        self._activation: Outcome | None = None
        self._hooks: RunHandle | None = None
        self._tool: Tool | None = None
        self._log: Log | None = None
        self._step = "reading the configuration"
        self._required: list[str] = []
        self._stopped = self._killed = self._timed_out = False
        self._work = asyncio.create_task(self._steps())

    # --- what the worker does to it -------------------------------------------------------------

    def stop(self) -> None:
        """Kill uv, or ask the hooks to end; return at once."""
        self._stopped = True
        if self._hooks is not None:
            self._hooks.stop()
        else:
            self._kill_uv()

    def kill(self) -> None:
        """Kill uv, or the hooks, before returning."""
        self._killed = True
        if self._hooks is not None:
            self._hooks.kill()
        else:
            self._kill_uv()

    def time_out(self) -> None:
        """Kill uv, or the hooks after they had a moment to report their stack."""
        self._timed_out = True
        if self._hooks is not None:
            self._hooks.time_out()
        else:
            self._kill_uv()

    def _kill_uv(self) -> None:
        if self._tool is not None:
            self._tool.kill()
        self._work.cancel()

    def when_started(self, call: Callable[[], None]) -> None:
        """Call back at once: all of a build's steps count."""
        call()

    async def outcome(self) -> Outcome:
        """Wait for the end of the build, write the activation folder, and return the outcome."""
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._is_broken_off():
                raise
        hooks = self._activation or Outcome(Status.FAILED)
        hooks = replace(hooks, result=self._with_log(hooks))
        if self._killed or (self._stopped and self._report.status != "ready"):
            return replace(hooks, status=Status.FAILED, error=stopped_error(), files=())
        if self._timed_out and self._report.status != "ready":
            location = hooks.location or CodeLocation(doing=self._step)
            late = too_long(self._spec.limits.timeout_ms / 1000, self._step)
            self._fail(located(late, hooks.location))
            hooks = replace(hooks, location=location)
        metrics.built(self._report.status, time.monotonic() - self._began)
        await asyncio.to_thread(self._write)
        result = hooks.result or {}
        outputs = {**result["outputs"], "result_json": asdict(self._report)}
        if self._timed_out and self._error is not None:
            status = Status.TIMED_OUT
        else:
            status = Status.SUCCEEDED if self._error is None else Status.FAILED
        result = {**result, "outputs": outputs}
        return replace(hooks, status=status, result=result, error=self._error, files=())

    def _with_log(self, hooks: Outcome) -> dict[str, Any]:
        """Put the log, of which the end is kept, before what the hooks printed."""
        result = hooks.result or {}
        outputs = dict(result.get("outputs", {}))
        written = self._log.text() if self._log is not None else ""
        outputs["stdout"] = _end_of(
            f"{written}{outputs.get('stdout', '')}", self._spec.limits.max_output_kb * KIB
        )
        return {**result, "outputs": outputs}

    def _is_broken_off(self) -> bool:
        return self._stopped or self._killed or self._timed_out

    def _fail(self, error: JobError) -> None:
        self._error = error
        self._report.fail(error)

    # --- the steps ------------------------------------------------------------------------------

    async def _steps(self) -> None:
        """Do one step after the other; what goes wrong is noted, never raised."""
        try:
            with self._logging():
                async with workshop(self._settings) as folder:
                    self._tool = Tool(self._settings, self._say)
                    await self._install(self._tool, folder)
                    self._begin_step(2, "running on_activate")
                    await self._activate()
                if self._error is not None:
                    self._say(self._error.message)
        except Exception as error:
            self._fail(failure_of(error))

    @contextmanager
    def _logging(self) -> Iterator[None]:
        """Write a log; what goes wrong meanwhile is its last line."""
        written = self._log = self._folder.begin()
        try:
            yield
        except Exception as error:
            self._say(failure_of(error).message)
            raise
        finally:
            written.close()

    def _say(self, line: str) -> None:
        """Write a line to the log, and to those who follow the build's output."""
        if self._log is not None:
            self._log.say(line)
        self._spec.on_output(Stream.STDOUT, f"{line}\n".encode(errors="replace"))

    def _begin_step(self, done: int, step: str, shown: str | None = None) -> None:
        self._step = step
        self._on_progress({"done": done, "total": STEPS, "message": shown or step})

    async def _install(self, tool: Tool, folder: Path) -> None:
        requirements = await asyncio.to_thread(self._requirements)
        self._required = names_of(requirements)
        if not requirements:
            tool.log(NOTHING_NEEDED)
            return
        self._begin_step(0, "resolving requirements.txt")
        lock = await resolve(requirements, tool, folder)
        self._report.packages = lock.packages
        if lock.text:
            count = len(lock.packages)
            shown = f"installing {count} package{'s' if count != 1 else ''}"
            self._begin_step(1, "installing packages", shown)
            if self._shared is not None:
                await self._shared.fetch(lock.digest)
            self._report.environment = await install(lock, tool, folder)
        else:
            tool.log("The engine has all of these packages itself.")

    def _requirements(self) -> list[str]:
        path = self._spec.files.get(f"{PACKAGE}/{FILE}")
        return [] if path is None else read_requirements(path.read_bytes())

    async def _activate(self) -> None:
        """Load the package and run its hooks in the sandbox."""
        if self._runner.refusal is not None:
            raise sandbox_unavailable(self._runner.refusal)
        spec = replace(
            self._spec,
            entry=ENTRY,
            inputs={"config": PACKAGE, "required": self._required},
            environment=self._report.environment,
            preload=ENGINE,
        )
        for tries in range(1, ACTIVATE_TRIES + 1):
            self._hooks = self._runner.start(spec, lambda progress: None)
            outcome = await self._hooks.outcome()
            self._hooks, self._activation = None, outcome
            if self._is_broken_off() or not _is_ours(outcome) or tries == ACTIVATE_TRIES:
                break
            log.warning("activation is tried again", code=outcome.error and outcome.error.code)
        self._note_activation(outcome)

    def _note_activation(self, outcome: Outcome) -> None:
        outputs = (outcome.result or {}).get("outputs", {})
        returned = outputs.get("result_json")
        package = returned if isinstance(returned, dict) else {}
        printed = f"{outputs.get('stdout', '')}{outputs.get('stderr', '')}"
        self._report.hooks = {
            "status": "succeeded" if outcome.error is None else "failed",
            "annotations": package.get("annotations", []),
            "fields": package.get("fields", []),
            "warnings": package.get("warnings", []),
            "diagnostics": [outcome.error.as_dict()] if outcome.error is not None else [],
            "output": printed[-PRINTED_CHARS_MAX:],
            "isolation": list(outcome.isolation),
            "resource_usage": outcome.usage,
        }
        for warning in package.get("warnings", []):
            self._report.diagnostics.append({"level": "warning", **_as_diagnostic(warning)})
        if outcome.error is None and outcome.status is Status.SUCCEEDED:
            self._report.status = "ready"
        elif self._is_broken_off():
            return  # why it ended is known better than the sandbox can tell
        elif outcome.error is not None:
            message = f"The configuration could not be activated: {outcome.error.message}"
            self._fail(replace(outcome.error, message=message))
        else:
            self._fail(broken("The configuration could not be activated."))

    def _write(self) -> None:
        """Write the activation folder; the outcome does not depend on it."""
        now = time.time()  # noqa: TID251 - a record for people
        times = {"started_at": self._began_at, "finished_at": now}
        try:
            write_report(self._folder, self._inputs, self._report, times)
        except OSError as error:
            log.warning("activation folder not written", reason=error.strerror)


def write_report(
    folder: ActivationFolder, inputs: BuildInputs, report: BuildReport, times: dict[str, float]
) -> None:
    """Write the result of a build where people look for it."""
    result = {
        "build_id": inputs.build_id,
        "attempt": inputs.attempt,
        "status": report.status,
        "python_executable": report.python_executable,
        "environment": report.environment,
        "packages": report.packages,
        **times,
        "diagnostics": report.diagnostics,
    }
    folder.finish(result, report.packages, report.hooks)


def failure_of(error: Exception) -> JobError:
    """Say what stopped a build, in words for its author."""
    match error:
        case BuildFailed():
            return error.error
        case Unavailable():
            return broken(error.detail)
        case AdeError():
            return JobError(Category.VALIDATION_ERROR, error.code.upper(), error.detail)
        case OSError():
            log.error("build could not be made", exc_info=error)
            reason = error.strerror or type(error).__name__
            return broken(f"The builder could not do its work: {reason}.")
        case _:
            log.error("build could not be made", exc_info=error)
            return broken("The builder failed; its log says more.")


def _is_ours(outcome: Outcome) -> bool:
    """Tell whether the sandbox failed, and not what ran in it."""
    return outcome.error is not None and outcome.error.category is Category.INTERNAL_ERROR


def _end_of(text: str, bytes_max: int) -> str:
    """Return a text, or as much of its end as fits, from the beginning of a line on."""
    whole = text.encode("utf-8", errors="replace")
    if len(whole) <= bytes_max:
        return text
    end = whole[len(whole) - bytes_max :]
    return end[end.find(b"\n") + 1 :].decode("utf-8", errors="replace")


def _as_diagnostic(warning: Any) -> dict[str, Any]:
    if isinstance(warning, dict):
        return warning
    return {"message": str(warning)[:DIAGNOSTIC_CHARS_MAX]}
