"""One attempt, from its claim to its end: prepare, run, collect, finish.

The worker may trust its lease until `trusted_until` (`ade.domain.lease`). Past that moment the
child is killed first, and its result is dropped.
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from pydantic import ValidationError

from ade.domain.build import KIND as BUILD
from ade.domain.build import environment_made
from ade.domain.errors import (
    AdeError,
    InvalidRequest,
    LeaseLost,
    NotFound,
    StorageFull,
    Unavailable,
)
from ade.domain.job import Status, StopRequest
from ade.domain.keys import digest
from ade.domain.limits import Limits
from ade.domain.network import NetworkRule, asked_for_network, gets_network
from ade.domain.outcome import Category, JobError, Outcome, located, timed_out_error
from ade.environments.failure import BuildFailed
from ade.kinds import JobInputs, JobIO, Kind, Kinds, Prepared
from ade.sandbox.spec import RunSpec
from ade.stages.finish import Finish, Finished
from ade.stages.output import OutputAppend
from ade.stages.report import AttemptReport
from ade.store.rows import Claim, JobRef, LeaseRef
from ade.telemetry import metrics
from ade.worker.attempt_output import AttemptOutput
from ade.worker.job_files import place_file, write_text
from ade.worker.record_end import record_end
from ade.worker.runner import RunHandle, Runner, see_to_the_end
from ade.worker.worker_kernel import EventExporter, WorkerKernel

PROGRESS_SECONDS_MIN = 0.5
FIELDS_MAX = 5
# How long the inputs of a job may take to arrive; it does not count against the job's own time.
PREPARE_SECONDS_MAX = 900.0
SHOWN_AFTER_SECONDS = 0.1
log = structlog.get_logger()


class Attempt:
    """Take one claimed job to its end."""

    def __init__(
        self,
        claim: Claim,
        trusted_until: float,
        *,
        kernel: WorkerKernel,
        record: Callable[[Finish], Awaitable[Finished]],
        kinds: Kinds,
        runner: Runner,
        build_runner: Runner,
        jobs_dir: Path,
        exporter: EventExporter,
        network: NetworkRule,
        job_io: JobIO,
    ) -> None:
        self.claim = claim
        self.held = LeaseRef(claim.workspace_id, claim.id, claim.fence)
        self.trusted_until = trusted_until
        self._kernel = kernel
        self._record = record
        self._kinds = kinds
        self._runner = build_runner if claim.kind == BUILD else runner
        self._folder = jobs_dir / claim.id
        self._exporter = exporter
        self._network = network
        self._job_io = job_io
        self._running: RunHandle | None = None
        self._stop: StopRequest | None = None
        self._given_up = False
        self._inputs: JobInputs | None = None
        self._packages: tuple[str, ...] = ()
        self._handed_back = False
        self._progress: dict[str, Any] | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._folder_task: asyncio.Task[dict[str, Path]] | None = None
        output_kb_max = json.loads(claim.limits).get("max_output_kb", 0)
        self._output = AttemptOutput(self.held, output_kb_max, self._append_output)
        self._ended = asyncio.Event()

    # --- what the worker does to it -------------------------------------------------------------

    def renewed(self, trusted_until: float, stop_request: str | None) -> None:
        """Trust the lease longer, and pass on a stop request."""
        self.trusted_until = trusted_until
        if stop_request is not None and self._stop != stop_request:
            self._stop = StopRequest(stop_request)
            if self._running is not None:
                self._running.stop()

    def give_up(self) -> None:
        """Kill the child, then forget the job: the lease is lost or can no longer be trusted."""
        self._given_up = True
        if self._running is not None:
            self._running.kill()

    def hand_back(self) -> None:
        """Kill the child, and put the job back for another worker."""
        self._handed_back = True
        if self._running is not None:
            self._running.kill()

    # --- its life -------------------------------------------------------------------------------

    async def see_through(self) -> None:
        """Prepare, run, collect, finish."""
        with structlog.contextvars.bound_contextvars(
            job_id=self.claim.id, attempt=self.claim.fence
        ):
            outcome = await self._outcome()
            self._ended.set()
            beside = [task for task in (self._reporting, self._folder_task) if task is not None]
            await asyncio.gather(*beside, return_exceptions=True)  # the outcome is known
            unstored = await self._output.close()
            if self._given_up:
                metrics.fence_rejected("given_up")
                log.warning("attempt given up", reason="lease lost")
                return
            end = self._handed_over(outcome) if self._handed_back else outcome
            await record_end(
                Finish(self.claim, end, unstored),
                self._record,
                self._kernel.finish,
                self._is_trusted,
            )
            await self._copy_events()

    def _handed_over(self, outcome: Outcome) -> Outcome | None:
        """Put the job back, unless it is done, or its kind forbids a second start."""
        if outcome.status is Status.SUCCEEDED:
            return outcome  # done is done, also at the last moment
        if self._running is None or self._kinds.named(self.claim.kind).retries > 0:
            return None
        message = "The worker was stopped during the job, and its kind allows no second start."
        return _failed(JobError(Category.INTERNAL_ERROR, "WORKER_STOPPED", message), outcome)

    async def _outcome(self) -> Outcome:
        """Run the job; whatever goes wrong around it is an internal error, never silence."""
        try:
            spec = await self._prepare_in_time()
            if self._stop is not None or self._given_up or self._handed_back:
                return self._stopped()
            return await self._run(spec)
        except LeaseLost:
            self.give_up()
            return self._stopped()
        except SandboxUnavailable as error:
            code = "SANDBOX_UNAVAILABLE"
            return _failed(JobError(Category.INTERNAL_ERROR, code, error.detail))
        except NotFound as error:
            missing = JobError(Category.DEPENDENCY_ERROR, "DEPENDENCY_NOT_FOUND", error.detail)
            return _failed(missing)
        except BuildFailed as failed:
            return _failed(failed.error)
        except Unavailable as error:
            return _failed(JobError(Category.INTERNAL_ERROR, "UNAVAILABLE", error.detail))
        except AdeError as error:
            return _failed(JobError(Category.VALIDATION_ERROR, error.code.upper(), error.detail))
        except OSError as error:
            log.exception("attempt could not run")
            reason = error.strerror or type(error).__name__
            message = f"The worker could not run the job: {reason}."
            return _failed(JobError(Category.INTERNAL_ERROR, "WORKER_ERROR", message))
        except Exception:
            log.exception("attempt could not run")
            message = "The worker could not run the job; its log says more."
            return _failed(JobError(Category.INTERNAL_ERROR, "WORKER_ERROR", message))

    async def _prepare_in_time(self) -> RunSpec:
        """Prepare the job; the time that it takes is limited, and is not the job's own."""
        try:
            async with asyncio.timeout(PREPARE_SECONDS_MAX) as preparing:
                return await self._prepare()
        except TimeoutError:
            if preparing.expired():
                message = f"The job was not prepared within {PREPARE_SECONDS_MAX:.0f} s."
                raise Unavailable(message) from None
            raise

    async def _prepare(self) -> RunSpec:
        """Prepare the job's folder and gather what the runner needs."""
        kind = self._kinds.named(self.claim.kind)
        payload = json.loads(self.claim.payload)
        if not kind.trusted and self._runner.refusal is not None:
            raise SandboxUnavailable(self._runner.refusal)
        self._inputs = _inputs_of(self.claim, kind, payload)
        prepared = await kind.prepare(self._inputs, self._job_io)
        self._packages = prepared.packages
        self._folder_task = asyncio.create_task(
            asyncio.to_thread(self._prepare_folder, payload, prepared)
        )
        # A sandboxed job does not work in its folder: the first attempt can begin without it.
        is_needed = prepared.files or not self._runner.isolation or self.claim.fence > 1
        files = await self._folder_task if is_needed else {}
        return RunSpec(
            entry=kind.entry,
            inputs=prepared.inputs,
            limits=Limits(**json.loads(self.claim.limits)),
            folder=self._folder,
            network=gets_network(
                self._network, asked_for_network(payload.get("environment") or {})
            ),
            files=files,
            outputs=prepared.outputs,
            environment=prepared.environment,
            preload=prepared.preload or kind.preload,
            on_output=self._output.take,
        )

    def _prepare_folder(self, payload: dict[str, Any], prepared: Prepared) -> dict[str, Path]:
        """Write the request and the inputs into the job's folder, where people can look at them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.claim.fence > 1:
            shutil.rmtree(self._folder / "artifacts", ignore_errors=True)
            (self._folder / "logs.txt").unlink(missing_ok=True)
        write_text(self._folder / "run-request.json", json.dumps(payload, indent=1))
        return {
            name: place_file(source, self._folder / name, copied=not self._runner.isolation)
            for name, source in prepared.files.items()
        }

    async def _run(self, spec: RunSpec) -> Outcome:
        running = self._runner.start(spec, self._on_progress)
        self._running = running
        showing = asyncio.create_task(self._show_beginning())
        seconds = spec.limits.timeout_ms / 1000
        outcome, timed_out = await see_to_the_end(running, seconds)
        showing.cancel()
        if self._folder_task is not None:
            await self._folder_task
        if (printed := _printed(outcome)) and self._is_trusted():  # or it is another attempt's now
            await asyncio.to_thread(self._keep_logs, printed)
        # Done is done, also when a stop came at the last moment.
        if outcome.status is not Status.SUCCEEDED:
            if self._stop is not None:
                outcome = self._stopped(outcome)
            elif timed_out and outcome.status is not Status.TIMED_OUT:
                error = located(timed_out_error(spec.limits.timeout_ms), outcome.location)
                outcome = replace(outcome, status=Status.TIMED_OUT, error=error)
        if self._inputs is not None:
            outcome = self._kinds.named(self.claim.kind).collect(self._inputs, outcome)
        return await self._kept(self._as_specified(outcome))

    async def _kept(self, outcome: Outcome) -> Outcome:
        """Keep the files that the job left; they become visible with the result that names them.

        A job whose files cannot be kept has failed, unless it was stopped: then its result says so.
        """
        try:
            if self.claim.kind == BUILD and (environment := environment_made(outcome.result)):
                await self._job_io.made_environment(environment)
            if not outcome.files or not self._is_trusted():
                return outcome
            artifacts = await self._job_io.keep(self.claim.workspace_id, outcome.files)
        except (StorageFull, Unavailable) as error:
            if self._stop is not None and outcome.status is not Status.SUCCEEDED:
                return _without_files(outcome, error.detail)
            if isinstance(error, StorageFull):
                full = JobError(Category.RESOURCE_LIMIT, "STORAGE_FULL", error.detail)
                return _failed(full, outcome)
            return _failed(JobError(Category.INTERNAL_ERROR, "UNAVAILABLE", error.detail), outcome)
        result = {**(outcome.result or {}), "artifacts": [one.as_dict() for one in artifacts]}
        return replace(outcome, result=result, artifacts=artifacts)

    def _as_specified(self, outcome: Outcome) -> Outcome:
        """Add the version of the kind, and drop the streams that the caller does not want."""
        if outcome.result is None or self._inputs is None:
            return outcome
        outputs = dict(outcome.result.get("outputs", {}))
        for stream in ("stdout", "stderr"):
            if not self._inputs.output_spec.get(f"return_{stream}", True):
                outputs[stream] = ""
        version = self._kinds.named(self.claim.kind).env_version
        result = {**outcome.result, "outputs": outputs, "env_version": version}
        if self._packages:
            installed = {"level": "info", "message": f"Installed: {', '.join(self._packages)}."}
            result["logs"] = [*result.get("logs", []), installed]
            result["env_version"] = f"{version}+{digest(list(self._packages))[7:19]}"
        return replace(outcome, result=result)

    async def _show_beginning(self) -> None:
        """Export the first events if the job takes long enough for people to look at them."""
        await asyncio.sleep(SHOWN_AFTER_SECONDS)
        await self._copy_events()

    async def _copy_events(self) -> None:
        """Bring the file of the job's events up to date; what is missing comes with the next."""
        try:
            await self._exporter.export(JobRef(self.claim.workspace_id, self.claim.id))
        except Exception as error:
            log.warning("events not copied", reason=type(error).__name__)

    def _is_trusted(self) -> bool:
        return not self._given_up and self._kernel.monotonic() < self.trusted_until

    def _stopped(self, outcome: Outcome | None = None) -> Outcome:
        """Say that the job was stopped; what it wrote until then is kept."""
        status = Status.PAUSED if self._stop is StopRequest.PAUSE else Status.CANCELLED
        if outcome is None:
            return Outcome(status, isolation=self._runner.isolation)
        return replace(outcome, status=status, error=None)

    def _keep_logs(self, text: str) -> None:
        """Write the job's output to its folder; an error is only logged, the result has it too."""
        try:
            write_text(self._folder / "logs.txt", text)
        except OSError as error:
            log.warning("logs.txt not written", reason=error.strerror)

    async def _append_output(self, append: OutputAppend) -> None:
        """Store output; that the lease is lost is known here before the next renewal."""
        try:
            await self._kernel.append_output(append)
        except LeaseLost:
            self.give_up()
            raise

    def _on_progress(self, progress: dict[str, Any]) -> None:
        """Report the newest progress, at most twice a second."""
        self._progress = progress
        self._output.take_step(progress.get("message", ""))
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._report())

    async def _report(self) -> None:
        while (progress := self._progress) is not None:
            self._progress = None
            try:
                await self._kernel.report(AttemptReport(self.held, progress=progress))
                await self._copy_events()
            except LeaseLost:
                self.give_up()
            except Exception as error:
                log.info("progress was not recorded", reason=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_SECONDS_MIN):
                    await self._ended.wait()


class SandboxUnavailable(AdeError):
    """The sandbox of this worker is too weak for this job."""

    code = "sandbox_unavailable"


def _printed(outcome: Outcome) -> str:
    """Return what a job wrote to its streams, one after the other."""
    outputs = (outcome.result or {}).get("outputs", {})
    return f"{outputs.get('stdout', '')}{outputs.get('stderr', '')}"


def _inputs_of(claim: Claim, kind: Kind, payload: dict[str, Any]) -> JobInputs:
    """Validate the payload of a job against the current version of its kind."""
    try:
        inputs = kind.inputs.model_validate(payload["inputs"])
        spec = kind.output_spec.model_validate(payload.get("output_spec") or {})
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, one["loc"])) for one in error.errors()[:FIELDS_MAX])
        raise InvalidRequest(
            f"The job's payload does not fit this version of {kind.name}: {fields}."
        ) from None
    return JobInputs(
        claim.workspace_id,
        claim.id,
        claim.fence,
        inputs.model_dump(mode="json"),
        spec.model_dump(mode="json"),
    )


def _without_files(outcome: Outcome, reason: str) -> Outcome:
    """Say in the result of a stopped job why its files were not kept."""
    result = outcome.result or {}
    warning = {"level": "warning", "message": f"The job's files were not kept: {reason}"}
    logs = [*result.get("logs", ()), warning]
    return replace(outcome, result={**result, "logs": logs}, files=())


def _failed(error: JobError, outcome: Outcome | None = None) -> Outcome:
    if outcome is None:
        return Outcome(Status.FAILED, error=error)
    return replace(outcome, status=Status.FAILED, error=error, files=())
