"""Normalise one file with one config package; used by the sandbox, `ade run` and tests.

The rows are written to `normalized.xlsx` and to the other formats that the package names;
`artifact.json` and `events.ndjson` explain them. A run that fails leaves only these two, with an
error that holds no cell's value.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.errors import EngineError, UnreadableFile
from ade_engine.package.author_errors import INTERNAL_ERROR, RESOURCE_LIMIT, VALIDATION_ERROR
from ade_engine.package.config_package import load_package
from ade_engine.package.failures import public_name
from ade_engine.package.source_code import PackageSource
from ade_engine.pipeline.run_pipeline import run_pipeline
from ade_engine.pipeline.write_output import OutputOptions, remove_outputs
from ade_engine.record.artifact import artifact_of, write_artifact
from ade_engine.record.run_events import EventName, Recorder, RunEvent, step_of
from ade_engine.version import ENGINE_VERSION

ARTIFACT_FILE = "artifact.json"
EVENTS_FILE = "events.ndjson"
HEADERS_VARIABLE = "ADE_ARTIFACT_HEADERS"
PROGRESS_SECONDS = 0.25
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
ENGINE = Path(__file__).parent.parent

Progress = Callable[[int, int, str], None]


class EngineFault(EngineError):
    """The engine itself failed."""

    code = "engine_fault"
    category = INTERNAL_ERROR


class OutOfMemory(EngineError):
    """The job needs more memory than its limit allows."""

    code = "out_of_memory"
    advice = "Give the job more memory, or split the file."


class OutputNotWritten(EngineError):
    """The output could not be written."""

    code = "output_not_written"
    advice = "Check the free disk space and the limit on file sizes."

    def __init__(self, number: int) -> None:
        super().__init__(f"Writing failed: {os.strerror(number)}")
        self.number = number

    def details(self) -> dict[str, Any]:
        """Return the errno, by which a full disk is told from a file that is too large."""
        return {"errno": self.number}


def headers_are_recorded(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether header texts are recorded: yes, unless ADE_ARTIFACT_HEADERS is off."""
    return environ.get(HEADERS_VARIABLE, "on").strip().lower() not in ("off", "false", "0", "no")


@dataclass(frozen=True)
class NormalizeRequest:
    """The input file, the config package, the output folder, and options."""

    input: Path
    config: Path
    output: Path
    job_id: str = ""
    input_name: str = ""
    headers: bool = field(default_factory=headers_are_recorded)
    timings: bool = True
    # Which version of which configuration the package is, where a server knows that.
    configuration: Mapping[str, Any] | None = None
    options: OutputOptions = field(default_factory=OutputOptions)

    @property
    def shown_name(self) -> str:
        """Return the input's name as it is recorded."""
        return self.input_name or self.input.name

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders that the run writes to."""
        files = self.options.files_folder
        return (self.output,) if files is None else (self.output, files)


def normalize(
    request: NormalizeRequest,
    progress: Progress | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
) -> dict[str, Any]:
    """Run the pipeline and return a summary; a failure is recorded and raised as EngineError."""
    request.output.mkdir(parents=True, exist_ok=True)
    for name in (ARTIFACT_FILE, EVENTS_FILE):
        (request.output / name).unlink(missing_ok=True)
    remove_outputs(*request.folders)
    with (request.output / EVENTS_FILE).open("w", encoding="utf-8") as stream:
        record = Recorder(stream, timings=request.timings, on_event=on_event)
        failed: EngineError | None = None
        fail_on = ""
        try:
            fail_on = _run(request, record, _Phases(progress or _silent))
        except EngineError as error:
            failed = error
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # one of the package's code may hold a value
        except BaseException as error:  # panics of Rust libraries are not Exceptions
            failed = _fault(error)
        if failed is not None:
            remove_outputs(*request.folders)  # a hook may have failed after they were written
            record.emit(EventName.RUN_FAILED, error=error_json(failed))
        artifact = artifact_of(record.events)
        write_artifact(artifact, request.output / ARTIFACT_FILE)
    if failed is not None:
        # The original exception may hold a value in its message, so it must not be printed.
        failed.__context__ = None
        raise failed from None
    return {
        "status": artifact["status"],
        "evaluation": artifact["evaluation"],
        "missing": _missing(artifact),
        "summary": artifact["summary"],
        "fail_on": fail_on,
        "files": [*_written(artifact), ARTIFACT_FILE, EVENTS_FILE],
    }


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Run as a job: `inputs` holds the paths `input`, `config` and `output`, and options."""
    request = NormalizeRequest(
        input=Path(inputs["input"]),
        config=Path(inputs["config"]),
        output=Path(inputs.get("output", ".")),
        job_id=str(inputs.get("job_id", "")),
        input_name=str(inputs.get("input_name", "")),
        headers=bool(inputs.get("headers", headers_are_recorded())),
        timings=bool(inputs.get("timings", True)),
        configuration=inputs.get("configuration"),
        options=OutputOptions(
            tuple(inputs.get("outputs") or ()), Path(inputs["files"]) if "files" in inputs else None
        ),
    )
    return normalize(request, channel.progress, lambda event: channel.step(step_of(event)))


def error_json(error: EngineError) -> dict[str, Any]:
    """Return an error as it is shown in the artifact, the events and the job."""
    details = getattr(error, "details", None)
    default = VALIDATION_ERROR if isinstance(error, UnreadableFile) else RESOURCE_LIMIT
    return {
        "category": getattr(error, "category", default),
        "code": error.code,
        "message": str(error),
        "details": details() if callable(details) else {},
    }


def _run(request: NormalizeRequest, record: Recorder, progress: _Phases) -> str:
    """Run the package on the input; return which result the package calls a failure."""
    size = None
    with suppress(OSError):
        size = request.input.stat().st_size
    record.emit(
        EventName.RUN_STARTED,
        job_id=request.job_id,
        engine={"version": ENGINE_VERSION},
        package={"digest": PackageSource(request.config.resolve()).digest},
        input={"name": request.shown_name, "bytes": size},
        **({"configuration": dict(request.configuration)} if request.configuration else {}),
    )
    with load_package(request.config) as package:
        package.around_hooks = progress.around_hooks
        record.emit(
            EventName.PACKAGE_LOADED,
            name=package.settings.name,
            fields=[rules.name for rules in package.fields],
        )
        run_pipeline(
            package,
            request.input,
            request.output,
            job_id=request.job_id,
            input_name=request.shown_name,
            record=record,
            headers=request.headers,
            progress=progress,
            options=request.options,
        )
        return package.settings.run.fail_on


def _written(artifact: dict[str, Any]) -> list[str]:
    """List the files that hold the rows."""
    (output,) = (event for event in artifact["events"] if event["stage"] == "output")
    workbook = [output["path"]] if output["path"] else []
    return [*workbook, *(file["path"] for file in output["files"])]


def _missing(artifact: dict[str, Any]) -> list[str]:
    """List the required fields missing in a written table, or in any table if none is written."""
    mapped = [event for event in artifact["events"] if event["stage"] == "mapping"]
    counted = [one for one in mapped if one["evaluation"] != "unusable"] or mapped
    return list(dict.fromkeys(name for one in counted for name in one["missing"]))


def _fault(error: BaseException) -> EngineError:
    """Describe an unexpected exception by its type and location, never by its message."""
    kind = public_name(type(error))
    if isinstance(error, MemoryError):
        return OutOfMemory("The job ran out of memory")
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return OutputNotWritten(error.errno)
    place, step = "", error.__traceback__
    while step is not None:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(ENGINE):
            place = f"{path.relative_to(ENGINE).as_posix()}:{step.tb_lineno}"
        step = step.tb_next
    return EngineFault(f"The engine failed with {kind}", where=place)


def _silent(done: int, total: int, message: str) -> None:
    pass


class _Phases:
    """Report progress at most a few times a second, a new phase and the end at once.

    So the last report names what a run was doing when it was stopped: a hook by its event.
    """

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._last = (0, 0, "")
        self._reported_at = 0.0

    def __call__(self, done: int, total: int, message: str) -> None:
        """Report progress, unless it can wait."""
        is_new = message != self._last[2] or (done == total and total > 0)
        self._last = (done, total, message)
        now = time.monotonic()
        if is_new or now - self._reported_at >= PROGRESS_SECONDS:
            self._reported_at = now
            self._report(done, total, message)

    @contextmanager
    def around_hooks(self, event: str) -> Iterator[None]:
        """Report that hooks are running, and then what comes after them."""
        before = self._last
        self(before[0], before[1], event)
        yield
        if before[2]:
            self(*before)
