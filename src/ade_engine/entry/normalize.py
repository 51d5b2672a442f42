"""Normalise one file with one config package; used by the sandbox, `ade run` and tests.

Three files are written to the output folder: `normalized.xlsx`, `artifact.json` and
`events.ndjson`. A run that fails leaves only the last two, with an error that holds no cell's
value.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.errors import EngineError, UnreadableFile
from ade_engine.package.author_errors import INTERNAL_ERROR, RESOURCE_LIMIT, VALIDATION_ERROR
from ade_engine.package.config_package import load_package
from ade_engine.package.failures import public_name
from ade_engine.package.source_code import PackageSource
from ade_engine.pipeline.run_pipeline import OUTPUT_FILE, run_pipeline
from ade_engine.record.artifact import artifact_of, write_artifact
from ade_engine.record.run_events import EventName, Recorder
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

    @property
    def shown_name(self) -> str:
        """Return the input's name as it is recorded."""
        return self.input_name or self.input.name


def normalize(request: NormalizeRequest, progress: Progress | None = None) -> dict[str, Any]:
    """Run the pipeline and return a summary; a failure is recorded and raised as EngineError."""
    request.output.mkdir(parents=True, exist_ok=True)
    for name in (OUTPUT_FILE, ARTIFACT_FILE, EVENTS_FILE):
        (request.output / name).unlink(missing_ok=True)
    with (request.output / EVENTS_FILE).open("w", encoding="utf-8") as stream:
        record = Recorder(stream, timings=request.timings)
        failed: EngineError | None = None
        try:
            _run(request, record, progress or _silent)
        except EngineError as error:
            failed = error
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # one of the package's code may hold a value
        except BaseException as error:  # panics of Rust libraries are not Exceptions
            failed = _fault(error)
        if failed is not None:
            (request.output / OUTPUT_FILE).unlink(
                missing_ok=True
            )  # a hook may have failed after it was written
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
        "files": [OUTPUT_FILE, ARTIFACT_FILE, EVENTS_FILE],
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
    )
    return normalize(request, _throttled(channel.progress))


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


def _run(request: NormalizeRequest, record: Recorder, progress: Progress) -> None:
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
        )


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
        return OutputNotWritten(f"Writing failed: {os.strerror(error.errno)}")
    place, step = "", error.__traceback__
    while step is not None:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(ENGINE):
            place = f"{path.relative_to(ENGINE).as_posix()}:{step.tb_lineno}"
        step = step.tb_next
    return EngineFault(f"The engine failed with {kind}", where=place)


def _silent(done: int, total: int, message: str) -> None:
    pass


def _throttled(report: Progress) -> Progress:
    """Report progress at most a few times a second, and always at the end."""
    last = 0.0

    def throttled(done: int, total: int, message: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS or (done == total and total):
            last = now
            report(done, total, message)

    return throttled
