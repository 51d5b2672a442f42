"""Run an attempt in a plain child process, without a sandbox.

The process is separate, has limits and can be killed. It leads a process group, so killing it also
kills the processes that it started, except those that left the group. `isolation` is empty.
"""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ade.domain.job import Status
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome, located
from ade.domain.output import Stream
from ade.domain.units import MIB
from ade.sandbox.child_messages import ChildMessages, OnProgress
from ade.sandbox.exit_status import ExitObservation, classify_exit, limit_error, stopped_error
from ade.sandbox.outputs import (
    ARTIFACTS,
    CollectedFiles,
    artifact_error,
    collect,
    collect_named,
    logs_of,
    missing_error,
    output_files,
)
from ade.sandbox.runtime_environment import Environment
from ade.sandbox.spec import RunSpec
from ade.sandbox.stack_location import ANSWER_SECONDS, JobSources, locate
from ade.sandbox.streams import BoundedOutput, LineSplitter, PipeReader
from ade_engine.stack_dump import STACK_DUMP_SIGNAL

# Not -I: it would ignore PYTHONHASHSEED.
CHILD = (sys.executable, "-P", "-s", "-B", "-m", "ade_engine.subprocess_child")
STOP_GRACE_SECONDS = 2.0
RESULT_BYTES_MAX = MIB
# A grandchild may hold a pipe open forever; after the child's end its output is waited for briefly.
PIPE_GRACE_SECONDS = 0.5
COLLECTED = "collected"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubprocessRunner:
    """Start each attempt as `python -m ade_engine.subprocess_child`."""

    file_mb_max: int = 100
    artifact_mb_max: int = 256
    result_bytes_max: int = RESULT_BYTES_MAX
    stop_grace_seconds: float = STOP_GRACE_SECONDS
    command: tuple[str, ...] = CHILD
    isolation: tuple[str, ...] = ()
    refusal: str | None = None
    environment_of: Callable[[str], Environment] | None = None

    def start(self, spec: RunSpec, on_progress: OnProgress) -> "SubprocessRun":
        """Start the child and send it its request."""
        return SubprocessRun(self, spec, on_progress)


class SubprocessRun:
    """Control one child process."""

    def __init__(self, runner: SubprocessRunner, spec: RunSpec, on_progress: OnProgress) -> None:
        if spec.folder is None:
            raise ValueError("without a sandbox a job needs a folder to work in")
        self._spec = spec
        self._folder = spec.folder
        self._artifact_mb_max = runner.artifact_mb_max
        self._stop_grace_seconds = runner.stop_grace_seconds
        self._messages = ChildMessages(on_progress, spec.on_output)
        self._killed_for: JobError | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._killing: asyncio.TimerHandle | None = None
        output_bytes_max = spec.limits.max_output_kb * 1024
        self._stdout, self._stderr = (
            BoundedOutput(output_bytes_max),
            BoundedOutput(output_bytes_max),
        )
        self._lines = LineSplitter(runner.result_bytes_max, self._messages.receive)
        self._child, channel = _spawn(runner, spec, spec.folder)
        self._pidfd = os.pidfd_open(self._child.pid)
        self._intakes = [
            PipeReader(_owned(self._child.stdout), self._take(Stream.STDOUT, self._stdout)),
            PipeReader(_owned(self._child.stderr), self._take(Stream.STDERR, self._stderr)),
            PipeReader(channel, self._lines.take),
        ]

    def _take(self, stream: Stream, kept: BoundedOutput) -> Callable[[bytes], None]:
        def take(piece: bytes) -> None:
            kept.take(piece)
            self._spec.on_output(stream, piece)

        return take

    def when_started(self, call: Callable[[], None]) -> None:
        """Call back at once: the process was started with the object."""
        call()

    async def outcome(self) -> Outcome:
        """Wait for the child's end and return the outcome."""
        status, usage = await self._reaped()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PIPE_GRACE_SECONDS):
                for intake in self._intakes:
                    await intake.ended.wait()
        for intake in self._intakes:
            intake.close()
        kept, collected = await asyncio.to_thread(self._collect)
        location = await asyncio.to_thread(self._location)
        return self._classified(status, usage, kept, collected, location)

    def _location(self) -> CodeLocation | None:
        """Find where the code was, if it was stopped."""
        messages, spec = self._messages, self._spec
        if self._killed_for is None and not messages.stack.frames:
            return None
        sources = JobSources(spec.files, spec.inputs)
        return locate(messages.stack, sources, messages.progress)

    def _collect(self) -> tuple[CollectedFiles, CollectedFiles]:
        """Collect the job's files; it worked in the folder itself, so nothing there is trusted."""
        spec, folder = self._spec, self._folder
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        bytes_max = self._artifact_mb_max * MIB
        try:
            kept = collect_named(opened, spec.outputs, folder, bytes_max=bytes_max)
            files_max = spec.limits.max_artifacts
            target = folder / COLLECTED
            shutil.rmtree(target, ignore_errors=True)
            collected = collect(opened, ARTIFACTS, target, files_max=files_max, bytes_max=bytes_max)
        finally:
            os.close(opened)
        with contextlib.suppress(OSError):  # a file was skipped, or there is no folder
            (folder / ARTIFACTS).rmdir()
        return kept, collected

    async def _reaped(self) -> tuple[int, resource.struct_rusage]:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._pidfd)
        self._signal(signal.SIGKILL)  # the rest of the group; the dead child still holds its pid
        _, status, usage = os.wait4(self._child.pid, 0)  # noqa: ASYNC222 - it is dead: no wait
        os.close(self._pidfd)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        for timer in (self._stopping, self._killing):
            if timer is not None:
                timer.cancel()
        return status, usage

    def stop(self) -> None:
        """Ask the group to end, and kill it if it does not end soon."""
        if self._child.returncode is None and self._stopping is None:
            self._signal(signal.SIGTERM)
            loop = asyncio.get_running_loop()
            self._stopping = loop.call_later(self._stop_grace_seconds, self.kill)

    def kill(self) -> None:
        """Kill the group."""
        self._killed_for = self._killed_for or stopped_error()
        self._signal(signal.SIGKILL)

    def time_out(self) -> None:
        """Kill the group, after the child had a moment to report its stack."""
        if self._killed_for is None and self._child.returncode is None:
            self._killed_for = stopped_error()
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, STACK_DUMP_SIGNAL)
            loop = asyncio.get_running_loop()
            self._killing = loop.call_later(ANSWER_SECONDS, self.kill)

    def _signal(self, number: int) -> None:
        if self._child.returncode is not None:
            return  # reaped: another process may have its pid by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def _classified(
        self,
        status: int,
        usage: resource.struct_rusage,
        kept: CollectedFiles,
        collected: CollectedFiles,
        location: CodeLocation | None,
    ) -> Outcome:
        cpu_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
        stderr = self._stderr.text()
        too_large = limit_error("RESULT_TOO_LARGE", "The result is larger than allowed.")
        # The peak memory is not used: a forked process inherits the peak of its parent.
        seen = ExitObservation(
            status,
            self._spec.limits,
            killed_for=too_large if self._lines.overflowed else self._killed_for,
            cpu_ms=cpu_ms,
            messages=self._messages.kept,
            stderr=stderr,
        )
        outputs: dict[str, Any] = {"stdout": self._stdout.text(), "stderr": stderr}
        error = classify_exit(seen)
        if error is not None and error.category is Category.RESOURCE_LIMIT:
            error = located(error, location)
        error = error or missing_error(self._spec.outputs, kept) or artifact_error(collected)
        if error is None:
            outputs["result_json"] = self._messages.first("result")
        logs = [*logs_of(collected), *self._messages.warning_logs()]
        return Outcome(
            status=Status.SUCCEEDED if error is None else Status.FAILED,
            result={"outputs": outputs, "logs": logs},
            error=error,
            usage={"cpu_ms": cpu_ms, "memory_mb_peak": round(usage.ru_maxrss / 1024)},
            files=(*output_files(kept, self._messages), *output_files(collected, self._messages)),
            location=location,
        )


def _spawn(
    runner: SubprocessRunner, spec: RunSpec, folder: Path
) -> tuple[subprocess.Popen[bytes], int]:
    """Start the child in a new session with a clean environment; return it and its channel."""
    request = folder / ".request.json"
    limits = {
        **spec.limits.as_dict(),
        "file_mb": runner.file_mb_max,
        "artifact_mb": runner.artifact_mb_max,
    }
    content = {"inputs": spec.inputs, "limits": limits, "paths": _paths(runner, spec)}
    request.write_text(json.dumps(content))
    channel, childs_end = os.pipe()
    try:
        with request.open("rb") as stdin:
            child = subprocess.Popen(
                [*runner.command, spec.entry, str(childs_end)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(childs_end,),
                cwd=folder,
                env=_environment_variables(folder),
                start_new_session=True,
            )
    except BaseException:
        os.close(channel)
        raise
    finally:
        os.close(childs_end)
        request.unlink(missing_ok=True)
    return child, channel


def _environment_variables(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PYTHONHASHSEED": "0",
    }


def _paths(runner: SubprocessRunner, spec: RunSpec) -> list[str]:
    """List the import paths of the build's environment; empty for ADE's own."""
    if spec.environment is None or runner.environment_of is None:
        return []
    return [str(path) for path in runner.environment_of(spec.environment).paths]


def _owned(stream: Any) -> int:
    """Duplicate a pipe's descriptor and close the object that owned it."""
    descriptor = os.dup(stream.fileno())
    stream.close()
    return descriptor
