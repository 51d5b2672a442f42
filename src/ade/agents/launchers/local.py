"""Blocks as processes of this machine.

They have a session of their own and outlive the scaler. A new scaler finds them in /proc by the
name of the block on their command line, so `local` is for one machine: a scaler on another host
does not see them.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ade.agents.launchers.port import Block, BlockRefused

OPTION = b"--block"


class LocalLauncher:
    """Start pilots as processes of this machine."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self._prefix = prefix
        self._folder = folder
        self._started: dict[str, asyncio.subprocess.Process] = {}

    async def launch(self, name: str, command: Sequence[str]) -> str:
        """Start a process; its output goes to a file with the block's name."""
        with self._log_file(name) as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise BlockRefused(f"{command[0]} cannot be started: {error.strerror}.") from None
        self._started[name] = process  # until it has ended, so that it leaves no zombie
        return str(process.pid)

    async def poll(self) -> list[Block]:
        """List the processes that have a block of this prefix on their command line."""
        found = [Block(name, str(pid), is_started=True) for name, pid in self._processes()]
        for name in self._started.keys() - {block.name for block in found}:
            await self._started.pop(name).wait()  # it has ended, and is reaped here
        return found

    async def drain(self, ids: Sequence[str]) -> None:
        """Ask the pilots to drain."""
        self._signal(ids, signal.SIGTERM)

    async def cancel(self, ids: Sequence[str]) -> None:
        """Ask the pilots to drain: a process that runs may have jobs."""
        self._signal(ids, signal.SIGTERM)

    def describe(self) -> str:
        """Say where blocks are started."""
        return f"processes of this machine; their output is in {self._folder}"

    def _log_file(self, name: str) -> IO[bytes]:
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return open(os.open(self._folder / f"{name}.log", flags, 0o600), "ab")

    def _signal(self, ids: Sequence[str], number: signal.Signals) -> None:
        ours = {str(pid) for _, pid in self._processes()}  # a pid may be another's by now
        for pid in ours.intersection(ids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), number)

    def _processes(self) -> Iterator[tuple[str, int]]:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if OPTION in words[:-1]:
                    name = words[words.index(OPTION) + 1].decode(errors="replace")
                    if name.startswith(self._prefix):
                        yield name, int(folder.name)
