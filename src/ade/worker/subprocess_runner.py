"""Run an attempt in a plain child process: separate, bounded and killable, but without walls.

Each child leads a process group, so that killing it kills what it started, unless that left the
group; walls that nothing can leave are the sandbox's. `isolation` is empty and says so.
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
from typing import Any

from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome, Place, located
from ade.sandbox.collect import Harvest, collect, collect_named
from ade.sandbox.environment import Environment
from ade.sandbox.judge import Seen, judge, limit_error, stopped_error
from ade.sandbox.leaving import artifact_error, left_files, logs_of, missing_error
from ade.sandbox.output import Bounded, Intake, Lines
from ade.sandbox.whereabouts import ANSWER_SECONDS, Sources, place_of
from ade.sandbox.words import Words
from ade.worker.runner import Assignment, Tell
from ade_engine.stack_dump import STACK_DUMP_SIGNAL

CHILD = (sys.executable, "-I", "-B", "-m", "ade_engine.subprocess_child")
STOP_GRACE_SECONDS = 2.0
RESULT_BYTES_MAX = 1024 * 1024
# A grandchild may keep a pipe open for ever; nobody waits for what it writes after the child's end.
PIPE_GRACE_SECONDS = 0.5
ARTIFACTS = "artifacts"
COLLECTED = "collected"
MIB = 1024 * 1024


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

    def start(self, assignment: Assignment, tell: Tell) -> "RunningChild":
        """Start the child and hand it its request."""
        return RunningChild(self, assignment, tell)


class RunningChild:
    """Stand for one child process."""

    def __init__(self, runner: SubprocessRunner, assignment: Assignment, tell: Tell) -> None:
        self._assignment = assignment
        self._artifact_mb_max = runner.artifact_mb_max
        self._stop_grace_seconds = runner.stop_grace_seconds
        self._words = Words(tell)
        self._killed_for: JobError | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._killing: asyncio.TimerHandle | None = None
        output_bytes_max = assignment.limits.max_output_kb * 1024
        self._stdout, self._stderr = Bounded(output_bytes_max), Bounded(output_bytes_max)
        self._lines = Lines(runner.result_bytes_max, self._words.hear)
        self._child, channel = _spawn(runner, assignment)
        self._pidfd = os.pidfd_open(self._child.pid)
        self._intakes = [
            Intake(_owned(self._child.stdout), self._stdout.take),
            Intake(_owned(self._child.stderr), self._stderr.take),
            Intake(channel, self._lines.take),
        ]

    async def outcome(self) -> Outcome:
        """Wait for the child's end and say what came of it."""
        status, usage = await self._reaped()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PIPE_GRACE_SECONDS):
                for intake in self._intakes:
                    await intake.ended.wait()
        for intake in self._intakes:
            intake.close()
        kept, harvest = await asyncio.to_thread(self._collect)
        place = await asyncio.to_thread(self._place)
        return self._judge(status, usage, kept, harvest, place)

    def _place(self) -> Place | None:
        """Find out where the code was, if it was stopped."""
        words, assignment = self._words, self._assignment
        if self._killed_for is None and not words.stack.frames:
            return None
        sources = Sources(assignment.files, assignment.inputs)
        return place_of(words.stack, sources, words.progress)

    def _collect(self) -> tuple[Harvest, Harvest]:
        """Take what the job left; it worked in the folder itself, and all of that is suspect."""
        assignment = self._assignment
        folder = assignment.folder
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        bytes_max = self._artifact_mb_max * MIB
        try:
            kept = collect_named(opened, assignment.outputs, folder, bytes_max=bytes_max)
            files_max = assignment.limits.max_artifacts
            place = folder / COLLECTED
            shutil.rmtree(place, ignore_errors=True)
            harvest = collect(opened, ARTIFACTS, place, files_max=files_max, bytes_max=bytes_max)
        finally:
            os.close(opened)
        with contextlib.suppress(OSError):  # it left something there, or never had such a folder
            (folder / ARTIFACTS).rmdir()
        return kept, harvest

    async def _reaped(self) -> tuple[int, resource.struct_rusage]:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._pidfd)
        self._signal(signal.SIGKILL)  # what is left; the dead child still keeps its number
        _, status, usage = os.wait4(self._child.pid, 0)  # noqa: ASYNC222 - it is dead: no wait
        os.close(self._pidfd)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        for timer in (self._stopping, self._killing):
            if timer is not None:
                timer.cancel()
        return status, usage

    def stop(self) -> None:
        """Ask the group to end, and kill it if it does not soon."""
        if self._child.returncode is None and self._stopping is None:
            self._signal(signal.SIGTERM)
            loop = asyncio.get_running_loop()
            self._stopping = loop.call_later(self._stop_grace_seconds, self.kill)

    def kill(self) -> None:
        """Kill the group."""
        self._killed_for = self._killed_for or stopped_error()
        self._signal(signal.SIGKILL)

    def time_out(self) -> None:
        """Kill the group, a moment after asking the child where it is."""
        if self._killed_for is None and self._child.returncode is None:
            self._killed_for = stopped_error()
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, STACK_DUMP_SIGNAL)
            loop = asyncio.get_running_loop()
            self._killing = loop.call_later(ANSWER_SECONDS, self.kill)

    def _signal(self, number: int) -> None:
        if self._child.returncode is not None:
            return  # reaped: its number may be another's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def _judge(
        self,
        status: int,
        usage: resource.struct_rusage,
        kept: Harvest,
        harvest: Harvest,
        place: Place | None,
    ) -> Outcome:
        cpu_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
        stderr = self._stderr.text()
        too_large = limit_error("RESULT_TOO_LARGE", "The result is larger than allowed.")
        # Its peak is no evidence: a child begins with the size of whoever started it.
        seen = Seen(
            status,
            self._assignment.limits,
            killed_for=too_large if self._lines.overflowed else self._killed_for,
            cpu_ms=cpu_ms,
            said=self._words.kept,
            stderr=stderr,
        )
        outputs: dict[str, Any] = {"stdout": self._stdout.text(), "stderr": stderr}
        error = judge(seen)
        if error is not None and error.category is Category.RESOURCE_LIMIT:
            error = located(error, place)
        error = error or missing_error(self._assignment.outputs, kept) or artifact_error(harvest)
        if error is None:
            outputs["result_json"] = self._words.first("result")
        return Outcome(
            status=Status.SUCCEEDED if error is None else Status.FAILED,
            result={"outputs": outputs, "logs": logs_of(harvest)},
            error=error,
            usage={"cpu_ms": cpu_ms, "memory_mb_peak": round(usage.ru_maxrss / 1024)},
            files=(*left_files(kept, self._words), *left_files(harvest, self._words)),
            place=place,
        )


def _spawn(runner: SubprocessRunner, assignment: Assignment) -> tuple[subprocess.Popen[bytes], int]:
    """Start the child in a session of its own, with a clean environment; return its channel."""
    request = assignment.folder / ".request.json"
    limits = {**assignment.limits.as_dict(), "file_mb": runner.file_mb_max}
    told = {"inputs": assignment.inputs, "limits": limits, "paths": _paths(runner, assignment)}
    request.write_text(json.dumps(told))
    channel, childs_end = os.pipe()
    try:
        with request.open("rb") as stdin:
            child = subprocess.Popen(
                [*runner.command, assignment.entry, str(childs_end)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(childs_end,),
                cwd=assignment.folder,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(assignment.folder)},
                start_new_session=True,
            )
    except BaseException:
        os.close(channel)
        raise
    finally:
        os.close(childs_end)
        request.unlink(missing_ok=True)
    return child, channel


def _paths(runner: SubprocessRunner, assignment: Assignment) -> list[str]:
    """List where modules are found, if not only where this process finds its own."""
    if assignment.environment is None or runner.environment_of is None:
        return []
    return [str(path) for path in runner.environment_of(assignment.environment).paths]


def _owned(stream: Any) -> int:
    """Take a pipe's descriptor over from the object that would close it."""
    descriptor = os.dup(stream.fileno())
    stream.close()
    return descriptor
