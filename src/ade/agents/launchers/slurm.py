"""Blocks as batch jobs of Slurm: `sbatch`, one `squeue` of this user, `scancel`.

The script replaces itself with the pilot (`exec`), or Slurm would signal a shell that dies while
the pilot drains. Signals go to the pilot alone (`--signal=B:`, `scancel --batch`), or the jobs that
it runs would be signalled with it. Nothing secret is in the script or in its environment: the
pilot reads its settings from a file.
"""

import asyncio
import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ade.agents.launchers.port import Block, BlockRefused, EngineAway
from ade.domain.scaling import DRAIN_MARGIN_SECONDS

COMMAND_SECONDS = 10.0
FIELDS = "%i|%T|%j|%r"
STARTED = frozenset({"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING"})
# What Slurm says when it cannot be reached, or is about to be: it may answer later.
AWAY = ("Unable to contact", "Socket timed out", "Connection refused", "Zero Bytes", "timed out")


@dataclass(frozen=True, slots=True)
class SlurmOrder:
    """Hold what a block asks of Slurm."""

    walltime_seconds: float
    grace_seconds: float
    folder: str
    partition: str | None = None
    options: tuple[str, ...] = ()

    def arguments(self, name: str) -> list[str]:
        """Return the arguments of `sbatch`."""
        minutes = -(-int(self.walltime_seconds) // 60)
        notice = int(self.grace_seconds + DRAIN_MARGIN_SECONDS)
        return [
            "--parsable",
            f"--job-name={name}",
            f"--time={minutes}",
            f"--signal=B:TERM@{notice}",
            "--export=HOME,PATH,LANG,USER",
            "--no-requeue",
            f"--chdir={self.folder}",
            f"--output={self.folder}/{name}.log",
            *([f"--partition={self.partition}"] if self.partition else []),
            *self.options,
        ]


class SlurmLauncher:
    """Start pilots as batch jobs."""

    def __init__(self, prefix: str, order: SlurmOrder) -> None:
        self._prefix = prefix
        self._order = order

    async def launch(self, name: str, command: Sequence[str]) -> str:
        """Submit a batch job, unless one of this name was accepted before."""
        for block in await self.poll():
            if block.name == name:
                return block.id
        script = f"#!/bin/sh\nexec {shlex.join(command)}\n"
        answer = await _run("sbatch", *self._order.arguments(name), script=script)
        return answer.strip().partition(";")[0]

    async def poll(self) -> list[Block]:
        """List the batch jobs of this user whose names have the prefix."""
        try:
            listing = await _run("squeue", "--me", "--noheader", f"--format={FIELDS}")
        except BlockRefused as refused:  # whatever it says, it is not an empty list
            raise EngineAway(str(refused)) from None
        found = []
        for line in listing.splitlines():
            number, state, name, reason = _fields(line)
            if name.startswith(self._prefix):
                detail = state.lower() + (f": {reason}" if reason != "None" else "")
                found.append(Block(name, number, state in STARTED, detail))
        return found

    async def drain(self, ids: Sequence[str]) -> None:
        """Signal the pilots, and not the jobs that they run."""
        if ids:
            await _run("scancel", "--batch", "--signal=TERM", *ids)

    async def cancel(self, ids: Sequence[str]) -> None:
        """Cancel batch jobs that have not started; one that has since keeps running."""
        if ids:
            await _run("scancel", "--state=PENDING", *ids)

    def describe(self) -> str:
        """Say where blocks are started."""
        where = f"partition {self._order.partition}" if self._order.partition else "its default"
        return f"Slurm, {where}; the output of pilots is in {self._order.folder}"


def _fields(line: str) -> list[str]:
    fields = line.strip().split("|", 3)
    if len(fields) != 4:
        raise EngineAway(f"squeue answered with a line that is not known: {line[:100]!r}")
    return fields


async def _run(program: str, *arguments: str, script: str | None = None) -> str:
    """Run a command of Slurm, or raise EngineAway or BlockRefused with what it said."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL if script is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise EngineAway(f"{program} cannot be started: {error.strerror}.") from None
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            output, errors = await process.communicate(None if script is None else script.encode())
    except TimeoutError:
        raise EngineAway(f"{program} did not answer within {COMMAND_SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()  # to the end of its pipes, or they would be left open
    if process.returncode == 0:
        return output.decode(errors="replace")
    said = " ".join(errors.decode(errors="replace").split())[:500] or f"{program} failed"
    raise (EngineAway if any(word in said for word in AWAY) else BlockRefused)(said)
