"""Blocks through an execution provider of Parsl: Grid Engine, PBS, LSF, HTCondor, Kubernetes.

Parsl starts and ends blocks well, but its view of them is not enough for a scaler. What this
launcher adds:

    what Parsl does                            what is done about it
    -----------------------------------------  ---------------------------------------------------
    its calls block, some for a minute         one thread makes them; one that hangs is EngineAway
    a command that times out goes on           it is killed, with all that it started
    a failed status command changes nothing    EngineAway, with what the command said
    `submit` returns None                      BlockRefused, or EngineAway, with what was said
    it knows the blocks of its process only    names and ids are in a file, for the next process
    ids that the engine forgot fail the call   they are asked for one by one
    some engines' states read FAILED in        such a block has ended once it read so for 30 s, and
    passing (transferring, suspended)          is cancelled if it never started
    a pod that was deleted runs for ever       no block is listed for long past its wall time

It cannot signal a pilot: `drain` is refused. What only the engine knows, why a block ended, is
not asked of it: the pilot itself registers and says goodbye.
"""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ade.agents.launchers.port import Block, BlockRefused, EngineAway

FAILED_SECONDS = 30.0
OVERDUE_SECONDS = 600.0
CALL_SPARE_SECONDS = 5.0
SAID_CHARACTERS_MAX = 500
# What engines say when they cannot be reached.
AWAY = ("commlib error", "to qmaster", "onnection refused", "annot connect", "timed out")
# What engines say of ids that they have forgotten.
FORGOTTEN = ("not found", "Unknown Job", "has finished", "do not exist", "Invalid job id")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Commands:
    """Run the commands of a provider in place of Parsl, and remember what failed."""

    seconds: float
    failure: str | None = None

    def __call__(self, command: str, timeout: float | None = None) -> tuple[int, str, str]:
        """Run a command of the engine; one that takes too long is killed."""
        process = subprocess.Popen(
            command,
            shell=True,  # providers write their commands for a shell
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        try:
            output, errors = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            program = command.split(maxsplit=1)[0]
            self.failure = f"{program} timed out after {self.seconds:g} s"
            raise
        if process.returncode:
            said = " ".join((errors or output).split())
            self.failure = said[:SAID_CHARACTERS_MAX] or f"it exited with {process.returncode}"
        return process.returncode, output, errors


@dataclass(slots=True)
class KnownBlock:
    """Hold what is known of a block; `resource` is what Parsl needs to ask for it."""

    id: str
    resource: dict[str, Any] = field(default_factory=dict)
    started_at: float | None = None
    failed_at: float | None = None
    detail: str = ""


class ParslLauncher:
    """Start pilots through a provider of Parsl."""

    def __init__(
        self,
        prefix: str,
        provider: Any,
        folder: Path,
        *,
        timeout_seconds: float,
        walltime_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider, self._folder = provider, folder
        self._file = folder / f"{prefix}blocks.json"
        self._timeout_seconds, self._walltime_seconds = timeout_seconds, walltime_seconds
        self._monotonic = monotonic
        self._commands = Commands(timeout_seconds)
        self._blocks: dict[str, KnownBlock] = {}
        self._file_is: tuple[int, int] | None = None  # inode and size, as last read or written
        self._thread = ThreadPoolExecutor(1, "parsl")
        self._call: asyncio.Future[Any] | None = None
        # Commands of an engine; the provider of Kubernetes has none.
        self._has_commands = hasattr(provider, "execute_wait")
        if self._has_commands:
            provider.execute_wait = self._commands
            provider.script_dir = str(folder)

    async def launch(self, name: str, command: Sequence[str]) -> str:
        """Order a block, unless one of this name is known."""
        return await self._in_thread(lambda: self._launch(name, command))

    async def poll(self) -> list[Block]:
        """List the blocks that this scaler ordered and that have not ended."""
        return await self._in_thread(self._poll)

    async def drain(self, ids: Sequence[str]) -> None:
        """Refuse: Parsl can only end blocks."""
        if ids:
            raise BlockRefused(
                "Parsl cannot signal pilots; they leave when they are idle, or before their wall"
                " time ends."
            )

    async def cancel(self, ids: Sequence[str]) -> None:
        """Cancel blocks that have not started."""
        if ids:
            await self._in_thread(lambda: self._cancel(set(ids)))

    def describe(self) -> str:
        """Say where blocks are started."""
        return f"Parsl's {type(self._provider).__name__}; scripts and output are in {self._folder}"

    # --- in the thread --------------------------------------------------------------------------

    def _launch(self, name: str, command: Sequence[str]) -> str:
        blocks = self._known()
        if name in blocks:
            return blocks[name].id
        # The shell that an engine starts must become the pilot, or it would be signalled instead.
        line = f"exec {shlex.join(command)}"
        if self._has_commands:
            line = f"cd {shlex.quote(str(self._folder))} && {line}"
        self._commands.failure = None
        try:
            number = self._provider.submit(line, 1, job_name=name)
        except Exception as error:
            raise _refusal(self._commands.failure or _said(error)) from None
        if not number:
            raise _refusal(self._commands.failure or "the engine gave no reason")
        resource = {k: v for k, v in self._provider.resources[number].items() if k != "status"}
        blocks[name] = KnownBlock(str(number), resource)
        self._save()
        return str(number)

    def _poll(self) -> list[Block]:
        blocks = self._known()
        states = self._states([block.id for block in blocks.values()])
        ended = [name for name, block in blocks.items() if self._has_ended(block, states[block.id])]
        for name in ended:
            self._provider.resources.pop(blocks.pop(name).id, None)
        if ended:
            self._save()
        return [
            Block(name, one.id, is_started=one.started_at is not None, detail=one.detail)
            for name, one in blocks.items()
        ]

    def _has_ended(self, block: KnownBlock, state: Any) -> bool:
        """Note the state of a block, and tell whether it has ended."""
        now, block.detail = self._monotonic(), state.name.lower() if state else "forgotten"
        if state is None:
            return True
        if state.name == "RUNNING" and block.started_at is None:
            block.started_at = now
        if block.started_at is not None:
            block_ends_at = block.started_at + self._walltime_seconds + OVERDUE_SECONDS
            if now >= block_ends_at:
                return True
        if state.name != "FAILED":
            block.failed_at = None
            return state.name in ("CANCELLED", "COMPLETED", "TIMEOUT", "MISSING", "SCALED_IN")
        block.failed_at = now if block.failed_at is None else block.failed_at
        if now - block.failed_at < FAILED_SECONDS:
            return False
        if block.started_at is None:  # in an error state of the queue, where it would stay
            self._provider.cancel([block.id])
        return True

    def _cancel(self, ids: set[str]) -> None:
        queued = [
            one.id for one in self._known().values() if one.id in ids and one.started_at is None
        ]
        states = self._states(queued)
        waiting = [one for one in queued if states[one] and states[one].name != "RUNNING"]
        self._commands.failure = None
        if waiting and not all(self._provider.cancel(waiting)):
            raise BlockRefused(self._commands.failure or "the engine gave no reason")

    def _states(self, ids: Sequence[str]) -> dict[str, Any]:
        """Ask for the states of blocks; None for one that the engine has forgotten."""
        if not ids:
            return {}
        states, failure = self._ask(ids)
        if failure is None:
            return states
        if not _means(failure, FORGOTTEN):
            raise EngineAway(failure)
        return {number: self._state_alone(number) for number in ids}

    def _state_alone(self, number: str) -> Any:
        """Ask for one block, as if the provider knew no other."""
        everything = self._provider.resources
        self._provider.resources = {number: everything[number]}
        try:
            states, failure = self._ask([number])
        finally:
            self._provider.resources = everything
        if failure is None:
            return states[number]
        if not _means(failure, FORGOTTEN):
            raise EngineAway(failure)
        return None

    def _ask(self, ids: Sequence[str]) -> tuple[dict[str, Any], str | None]:
        """Return the states that the provider tells, and what its command said if it failed."""
        self._commands.failure = None
        try:
            states = [one.state for one in self._provider.status(ids)]
        except Exception as error:
            raise EngineAway(self._commands.failure or _said(error)) from None
        return dict(zip(ids, states, strict=True)), self._commands.failure

    # --- what a next process must know ----------------------------------------------------------

    def _known(self) -> dict[str, KnownBlock]:
        """Return the blocks, with those that another process ordered while it decided."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return self._blocks
        if self._file_is != (found.st_ino, found.st_size):
            try:
                self._adopt(json.loads(self._file.read_text()))
            except (ValueError, TypeError, KeyError, OSError) as error:
                raise EngineAway(f"{self._file} cannot be read: {_said(error)}") from None
            self._file_is = found.st_ino, found.st_size
        return self._blocks

    def _adopt(self, kept: dict[str, Any]) -> None:
        from parsl.jobs.states import JobState, JobStatus

        self._blocks = {
            name: self._blocks.get(name) or KnownBlock(one["id"], one["resource"])
            for name, one in kept.items()
        }
        ids = {block.id: block for block in self._blocks.values()}
        resources = self._provider.resources
        for number in resources.keys() - ids.keys():
            del resources[number]
        for number in ids.keys() - resources.keys():
            status = {"status": JobStatus(JobState.PENDING)}
            resources[number] = ids[number].resource | status

    def _save(self) -> None:
        blocks = self._blocks.items()
        kept = {name: {"id": one.id, "resource": one.resource} for name, one in blocks}
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(kept, default=str))
        written = part.stat()
        part.rename(self._file)
        self._file_is = written.st_ino, written.st_size

    # --- the thread -----------------------------------------------------------------------------

    async def _in_thread(self, call: Callable[[], Answer]) -> Answer:
        """Make a call of Parsl in the thread, or raise EngineAway if it takes too long."""
        if self._call is not None and not self._call.done():
            raise EngineAway("An earlier call of the engine has not ended yet.")
        self._call = asyncio.get_running_loop().run_in_executor(self._thread, call)
        self._call.add_done_callback(lambda done: done.cancelled() or done.exception())
        seconds = self._timeout_seconds + CALL_SPARE_SECONDS
        try:
            async with asyncio.timeout(seconds):
                answer: Answer = await asyncio.shield(self._call)
        except TimeoutError:
            raise EngineAway(f"The engine did not answer within {seconds:g} s.") from None
        return answer


def _means(failure: str, words: Sequence[str]) -> bool:
    return any(word in failure for word in words)


def _refusal(said: str) -> Exception:
    """Tell an engine that refused an order from one that cannot be reached."""
    return EngineAway(said) if _means(said, AWAY) else BlockRefused(said)


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())[:SAID_CHARACTERS_MAX]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
