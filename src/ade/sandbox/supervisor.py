"""Run one spec in a child: send it, read its output, enforce its limits, classify its end.

It needs no thread: descriptors are read in the event loop, and the child's resource usage is
measured every few milliseconds. The reason for a kill is recorded before the kill, so that the end
can be explained.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from ade.domain.job import Status
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome, located
from ade.domain.output import Stream
from ade.domain.units import MIB
from ade.sandbox import usage
from ade.sandbox.child.apply_layers import LENGTH
from ade.sandbox.child.job_process import FILES_AT_ONCE
from ade.sandbox.child_exit import ChildExit
from ade.sandbox.child_messages import ChildMessages, OnProgress
from ade.sandbox.denied_calls import DeniedCalls
from ade.sandbox.exit_status import (
    VIOLATIONS_SHOWN_MAX,
    ExitObservation,
    classify_exit,
    cpu_error,
    limit_error,
    memory_error,
    stopped_error,
)
from ade.sandbox.folders import fits
from ade.sandbox.open_files import unnamed_bytes
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
from ade.sandbox.pool import Pool
from ade.sandbox.process_identity import handles_signal
from ade.sandbox.runtime_environment import Environment
from ade.sandbox.spec import RunSpec, WorkerBounds, data_bytes, over_bytes_max
from ade.sandbox.stack_location import ANSWER_SECONDS, JobSources, locate
from ade.sandbox.streams import BoundedOutput, LineSplitter, PipeReader
from ade.sandbox.zygote_child import Child
from ade.sandbox.zygote_client import SetupFailed, ZygoteGone
from ade_engine.stack_dump import STACK_DUMP_SIGNAL

log = structlog.get_logger()
MEASURE_SECONDS = 0.025
MEASURE_SHARE = 20  # measuring takes at most one part in so many of the event loop's time
CLOSE_SHARE = 5  # likewise, for a job that nothing but the measuring keeps from its memory limit
CLOSE_TO_LIMIT = 0.5
STOP_GRACE_SECONDS = 2.0
DRAIN_SECONDS = 0.5
PROGRESS_BYTES_TOTAL = 8 * MIB
OUTPUT_FLOOD_BYTES = 8 * MIB


class Stopped(Exception):
    """The job was killed before a child was taken for it."""


class SandboxedRun:
    """Run one spec to its end."""

    def __init__(
        self,
        pool: Pool,
        spec: RunSpec,
        environment: Environment,
        on_progress: OnProgress,
        bounds: WorkerBounds,
    ) -> None:
        self._pool = pool
        self._spec = spec
        self._environment = environment
        self._bounds = bounds
        self._child: Child | None = None
        self._killed_for: JobError | None = None
        self._is_stopped = False
        self._is_stack_requested = self._is_killed = False
        self._denied: DeniedCalls | None = None
        self._received_bytes = 0
        self._taking: asyncio.Task[Child] | None = None
        self._on_start: Callable[[], None] = lambda: None
        self._messages = ChildMessages(on_progress, spec.on_output)
        self._usage = usage.TreeUsage()
        output_bytes = spec.limits.max_output_kb * 1024
        self._flood_bytes = max(OUTPUT_FLOOD_BYTES, 8 * output_bytes)
        self._stdout, self._stderr = BoundedOutput(output_bytes), BoundedOutput(output_bytes)
        self._lines = LineSplitter(bounds.result_bytes, self._messages.receive)

    # --- control by the worker ------------------------------------------------------------------

    def stop(self) -> None:
        """Ask the code to end, and kill it if it does not end soon.

        Code that does not handle SIGTERM would end at once, but the kernel ignores the default
        action for the first process of a pid namespace, so it is killed.
        """
        if not self._is_stopped:
            self._is_stopped = True
            if self._child is not None:
                if not handles_signal(self._child.pid, signal.SIGTERM):
                    self.kill()
                    return
                self._child.signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(STOP_GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """Kill the code and every process that it started."""
        self._killed_for = self._killed_for or stopped_error()
        self._is_killed = True
        if self._child is not None:
            self._child.signal(signal.SIGKILL)
        elif self._taking is not None:
            self._taking.cancel()

    def time_out(self) -> None:
        """Kill the code because its time is over, after it had a moment to report its stack."""
        self._end_for(stopped_error())

    def _kill_for(self, reason: JobError) -> None:
        """Kill at once, where there is no time for a stack trace."""
        self._killed_for = self._killed_for or reason
        self.kill()

    def _end_for(self, reason: JobError) -> None:
        """Request a stack trace, and kill a moment later; the answer does not change the reason."""
        if self._killed_for is not None:
            return
        self._killed_for = reason
        if self._child is None:
            self.kill()
            return
        self._is_stack_requested = True
        self._child.signal(STACK_DUMP_SIGNAL)
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self.kill)

    def when_started(self, call: Callable[[], None]) -> None:
        """Call back when a child has been taken and receives the job."""
        self._on_start = call

    # --- from the first step to the last --------------------------------------------------------

    async def outcome(self) -> Outcome:
        """Take a child, send it the spec, wait for its end, and return the outcome."""
        try:
            child = await self._take_child()
        except Stopped:
            return self._internal("STOPPED", "The worker ended the job before it began.")
        except ZygoteGone as error:
            return self._internal("ZYGOTE_LOST", f"The job's interpreter could not start: {error}")
        except SetupFailed as error:
            return self._internal("SANDBOX_SETUP", f"The sandbox could not be set up: {error}")
        self._child = child
        try:
            self._pool.limit_memory(child, self._spec.limits.memory_mb)
            return await self._see_through(child)
        except ZygoteGone:
            return self._internal("ZYGOTE_LOST", "The job's interpreter died while it ran.")
        finally:
            self._pool.finished(child)

    async def _take_child(self) -> Child:
        """Wait for a child, until the job is killed."""
        take = self._pool.take(self._environment, network=self._spec.network)
        taking = asyncio.create_task(take)
        self._taking = taking
        if self._killed_for is not None:
            taking.cancel()
        try:
            return await taking
        except asyncio.CancelledError:
            if self._killed_for is not None:
                raise Stopped from None
            raise

    async def _see_through(self, child: Child) -> Outcome:
        monitor = usage.UsageMonitor(
            child.pid,
            self._spec.limits.memory_mb * 1024,
            has_own_network="net" in self._pool.isolation(network=self._spec.network),
        )
        intakes = [
            PipeReader(child.release("stdout"), self._take(Stream.STDOUT, self._stdout)),
            PipeReader(child.release("stderr"), self._take(Stream.STDERR, self._stderr)),
        ]
        if child.listener >= 0:
            self._denied = DeniedCalls(child.release("listener"))
        if self._killed_for is not None or self._is_stopped:
            child.signal(signal.SIGKILL)
        line = PipeReader(os.dup(child.line.fileno()), self._receive)
        watching = asyncio.create_task(self._watch(child, monitor))
        # Another process may hold the child's end of the line open, and not read it.
        child.ended.add_done_callback(lambda _: _end_sending(child.line))
        try:
            self._on_start()
            await self._send_spec(child)
            ended = await child.ended
        finally:
            watching.cancel()
            if self._denied is not None:
                self._denied.close()
            for intake in (*intakes, line):
                intake.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    for intake in (*intakes, line):
                        await intake.ended.wait()
                    if self._denied is not None:
                        await self._denied.settled.wait()
            for intake in (*intakes, line):
                intake.close()
        return await self._conclude(child, ended, monitor.baseline_kb)

    async def _send_spec(self, child: Child) -> None:
        """Send the spec and its files; a child that dies meanwhile is classified by its end."""
        spec, bounds, limits = self._spec, self._bounds, self._spec.limits
        text = json.dumps(
            {
                "entry": spec.entry,
                "inputs": spec.inputs,
                "files": list(spec.files),
                "limits": {
                    "cpu_seconds": -(-limits.cpu_ms // 1000) + 1,
                    "data_bytes": data_bytes(limits),
                    "file_bytes": bounds.file_mb * MIB,
                    "nice": bounds.nice,
                    "artifacts": limits.max_artifacts,
                    "artifact_bytes": bounds.artifact_mb * MIB,
                },
            }
        ).encode()
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(child.line, LENGTH.pack(len(text)) + text)
            paths = list(spec.files.values())
            for first in range(0, len(paths), FILES_AT_ONCE):
                await self._send_files(child, paths[first : first + FILES_AT_ONCE])
        except (BrokenPipeError, ConnectionResetError):
            return

    async def _send_files(self, child: Child, paths: list[Path]) -> None:
        opened = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
        try:
            while True:
                try:
                    socket.send_fds(child.line, [b"F"], opened)
                    return
                except BlockingIOError:
                    await asyncio.sleep(MEASURE_SECONDS)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    # --- output and messages --------------------------------------------------------------------

    def _take(self, stream: Stream, kept: BoundedOutput) -> Callable[[bytes], None]:
        def take(piece: bytes) -> None:
            kept.take(piece)
            self._spec.on_output(stream, piece)
            if kept.taken_bytes > self._flood_bytes:
                megabytes = self._flood_bytes // MIB
                message = f"The job printed more than {megabytes} MiB and was stopped."
                self._end_for(limit_error("OUTPUT_LIMIT", message))

        return take

    def _receive(self, piece: bytes) -> None:
        self._received_bytes += len(piece)
        if self._received_bytes > self._bounds.result_bytes + PROGRESS_BYTES_TOTAL:
            self._kill_for(limit_error("OUTPUT_LIMIT", "The job reported too much progress."))
        self._lines.take(piece)
        if self._is_stack_requested and self._messages.stack.is_whole:
            self.kill()
        if self._lines.overflowed:
            message = f"The result is larger than {self._bounds.result_bytes // 1024} KiB."
            self._kill_for(limit_error("RESULT_TOO_LARGE", message))

    @property
    def _violations(self) -> list[str]:
        """List the system calls that were denied."""
        return [] if self._denied is None else self._denied.names

    # --- limits ---------------------------------------------------------------------------------

    async def _watch(self, child: Child, monitor: usage.UsageMonitor) -> None:
        """Enforce the limits until cancelled; if measuring fails, kill the job."""
        try:
            await self._measure(child, monitor)
        except Exception:
            log.exception("resource usage could not be measured")
            message = "The job's resource usage could not be measured, so it was stopped."
            self._kill_for(JobError(Category.INTERNAL_ERROR, "WATCH_LOST", message))

    async def _measure(self, child: Child, monitor: usage.UsageMonitor) -> None:
        loop = asyncio.get_running_loop()
        wait, folder_due = MEASURE_SECONDS, 0.0
        while not self._is_killed:
            await asyncio.sleep(wait)
            now, took = await usage.in_turns(monitor.measure())
            self._usage = usage.TreeUsage(
                max(now.memory_kb, self._usage.memory_kb),
                max(now.cpu_ms, self._usage.cpu_ms),
                max(now.threads, self._usage.threads),
            )
            self._stop_at_limits(now)
            if child.scratch is not None and loop.time() >= folder_due:
                folder_took = await self._watch_folder(child, child.scratch)
                folder_due = loop.time() + MEASURE_SHARE * folder_took
            # Measuring a large tree takes long, and the event loop serves other jobs too.
            is_close = now.memory_kb > CLOSE_TO_LIMIT * self._spec.limits.memory_mb * 1024
            share = CLOSE_SHARE if is_close and child.group is None else MEASURE_SHARE
            wait = max(MEASURE_SECONDS, share * took)

    def _stop_at_limits(self, now: usage.TreeUsage) -> None:
        limits = self._spec.limits
        memory_bytes = now.memory_kb * 1024
        is_growing = memory_bytes > over_bytes_max(limits.memory_mb * MIB)
        if memory_bytes > data_bytes(limits) or (self._is_stack_requested and is_growing):
            # There is no time for a stack trace.
            self._kill_for(memory_error(limits))
        elif now.memory_kb > limits.memory_mb * 1024:
            self._end_for(memory_error(limits))
        elif now.cpu_ms > limits.cpu_ms:
            self._end_for(cpu_error(limits))
        elif now.threads > self._pool.threads_max:
            message = "The job started too many processes or threads."
            self._kill_for(limit_error("PROCESS_LIMIT", message))

    async def _watch_folder(self, child: Child, scratch: Path) -> float:
        """Enforce the size of a folder on a real disk, which has no quota; return the CPU seconds.

        A job that was asked for its stack and writes on is killed before it answers.
        """
        megabytes, entries_max = self._pool.folder_bounds
        message = (
            f"The job's files grew over {megabytes} MiB, {entries_max} entries or their depth."
        )
        error = limit_error("DISK_LIMIT", message)
        is_asked = self._is_stack_requested
        bytes_max = over_bytes_max(megabytes * MIB) if is_asked else megabytes * MIB
        has_room, took = await asyncio.to_thread(self._has_room, child, scratch, bytes_max)
        if not has_room:
            (self._kill_for if is_asked else self._end_for)(error)
        return took

    def _has_room(self, child: Child, scratch: Path, bytes_max: int) -> tuple[bool, float]:
        """Tell whether the job's files fit, and how many CPU seconds it took to find out."""
        began = time.thread_time()
        _, entries_max = self._pool.folder_bounds
        file_bytes_max = self._bounds.file_mb * MIB
        unnamed = unnamed_bytes(child.pid, scratch, child.zygote.plan.user, file_bytes_max)
        has_room = fits(scratch, bytes_max, entries_max, unnamed_bytes=unnamed)
        return has_room, time.thread_time() - began

    # --- the end --------------------------------------------------------------------------------

    async def _conclude(self, child: Child, ended: ChildExit, baseline_kb: int) -> Outcome:
        cpu_ms = max(ended.cpu_ms, self._usage.cpu_ms)
        peak_kb = max(0, ended.peak_kb - baseline_kb, self._usage.memory_kb)
        seen = ExitObservation(
            ended.status,
            self._spec.limits,
            killed_for=self._killed_for,
            was_killed_by_memory_limit=child.group is not None and child.group.has_killed(),
            cpu_ms=cpu_ms,
            memory_mb_peak=round(peak_kb / 1024),
            violations=self._violations,
            messages=self._messages.kept,
            stderr=self._stderr.text(),
        )
        setup = self._messages.first("setup_error")
        if setup is not None:
            return self._internal("SANDBOX_SETUP", f"The sandbox could not be set up: {setup}")
        error = classify_exit(seen)
        location = await self._location()
        if error is not None and error.category is Category.RESOURCE_LIMIT:
            error = located(error, location)
        outputs: dict[str, Any] = {"stdout": self._stdout.text(), "stderr": self._stderr.text()}
        named, artifacts = await self._collect(child)
        error = error or missing_error(self._spec.outputs, named) or artifact_error(artifacts)
        if error is None:
            outputs["result_json"] = self._messages.first("result")
        logs = [*logs_of(artifacts), *self._messages.warning_logs()]
        if self._violations and (error is None or "refused" not in error.details):
            tried = ", ".join(self._violations[:VIOLATIONS_SHOWN_MAX])
            logs.append({"level": "warning", "message": f"The sandbox refused: {tried}."})
        return Outcome(
            status=Status.SUCCEEDED if error is None else Status.FAILED,
            result={"outputs": outputs, "logs": logs},
            error=error,
            usage={"cpu_ms": cpu_ms, "memory_mb_peak": seen.memory_mb_peak},
            isolation=self._pool.isolation(network=self._spec.network),
            files=(*output_files(named, self._messages), *output_files(artifacts, self._messages)),
            location=location,
        )

    async def _location(self) -> CodeLocation | None:
        """Find where the code was, if it was stopped or reported its stack."""
        messages, spec = self._messages, self._spec
        if self._killed_for is None and not messages.stack.frames:
            return None
        sources = JobSources(spec.files, spec.inputs)
        return await asyncio.to_thread(locate, messages.stack, sources, messages.progress)

    async def _collect(self, child: Child) -> tuple[CollectedFiles, CollectedFiles]:
        """Collect the outputs that the spec names, and the artifacts."""
        if self._spec.folder is None or child.folder < 0:
            return CollectedFiles(), CollectedFiles()
        return await asyncio.to_thread(self._collect_into, self._spec.folder, child.folder)

    def _collect_into(self, target: Path, folder: int) -> tuple[CollectedFiles, CollectedFiles]:
        spec, bytes_max = self._spec, self._bounds.artifact_mb * MIB
        return (
            collect_named(folder, spec.outputs, target, bytes_max=bytes_max),
            collect(
                folder,
                ARTIFACTS,
                target / ARTIFACTS,
                files_max=spec.limits.max_artifacts,
                bytes_max=bytes_max,
            ),
        )

    def _internal(self, code: str, message: str) -> Outcome:
        error = JobError(Category.INTERNAL_ERROR, code, message[:1000])
        outputs = {"stdout": self._stdout.text(), "stderr": self._stderr.text()}
        return Outcome(
            Status.FAILED,
            result={"outputs": outputs, "logs": []},
            error=error,
            isolation=self._pool.isolation(network=self._spec.network),
        )


def _end_sending(line: socket.socket) -> None:
    """Let whoever sends on this line find it closed; what the child sent can still be read."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)  # shut for writing only, it would not wake a sender
