"""Run uv: with nothing of our environment, nothing of its configuration files, and an open log."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

import uv

from ade.domain.units import MIB
from ade.environments import die_with_parent
from ade.environments.failure import not_installed
from ade.settings import Settings

# How the registry is reached is this machine's business, not the configuration's.
PASSED_ON = (
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)
OUTPUT_BYTES_MAX = 4 * MIB
LINE_BYTES_MAX = 64 * 1024
REASON_CHARS_MAX = 1_500
CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
GLYPHS = re.compile("[×╰─▶│├]+")

Log = Callable[[str], None]


@cache
def uv_version() -> str:
    """Return which uv installs."""
    return version("uv")


@dataclass(frozen=True, slots=True)
class Tool:
    """Hold how uv is called here, and which of its processes run."""

    settings: Settings
    log: Log
    _running: set[asyncio.subprocess.Process] = field(default_factory=set)

    @property
    def cache_folder(self) -> Path:
        """Return where uv keeps what it fetched."""
        return self.settings.activation_envs_dir.resolve() / "cache"

    def sources(self) -> list[str]:
        """Return the arguments that say where packages come from."""
        settings = self.settings
        found = ["--no-config", "--no-progress", "--python", sys.executable]
        if settings.wheelhouse is not None:
            found += ["--offline", "--no-index", "--find-links", str(settings.wheelhouse.resolve())]
        if not settings.source_builds:
            found += ["--only-binary", ":all:"]
        return found

    async def run(self, arguments: Sequence[str], folder: Path) -> str:
        """Run uv to its end and return what it printed; cancelled, kill it first.

        Raises BuildFailed with the last lines of its output. All of its output goes to the log.
        """
        lines: list[str] = []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())),
            *(uv.find_uv_bin(), *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=self._environ(folder),
            start_new_session=True,
            limit=LINE_BYTES_MAX,
        )
        self._running.add(process)
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            output, _ = await asyncio.gather(
                _bounded(process.stdout), self._listen(process.stderr, lines)
            )
            status = await process.wait()
        except BaseException:
            _kill(process)
            with contextlib.suppress(Exception):
                # To the end of its pipes, or they would be left open.
                await asyncio.shield(process.communicate())
            raise
        finally:
            self._running.discard(process)
        if status != 0:
            raise not_installed(_reason(lines, status))
        return output

    def kill(self) -> None:
        """Kill uv and what it started, before returning."""
        for process in self._running:
            _kill(process)

    def _environ(self, folder: Path) -> dict[str, str]:
        given = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        given |= {n.lower(): os.environ[n.lower()] for n in PASSED_ON if n.lower() in os.environ}
        given |= {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "NO_COLOR": "1",
            "UV_CACHE_DIR": str(self.cache_folder),
            "UV_PYTHON_DOWNLOADS": "never",
        }
        if self.settings.index_url is not None:
            # Not an argument: it may hold a password, and arguments are for everyone to see.
            given["UV_DEFAULT_INDEX"] = self.settings.index_url.get_secret_value()
        return given

    async def _listen(self, stream: asyncio.StreamReader, lines: list[str]) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than a line may be; the rest of it follows
                continue
            if not line:
                return
            text = self._discreet(line.decode("utf-8", "replace").rstrip())
            lines[:] = [*lines[-50:], text]
            self.log(text)

    def _discreet(self, text: str) -> str:
        """Leave out the folders of this machine, and passwords."""
        settings = self.settings
        hidden = {"<environments>": settings.activation_envs_dir.resolve(), "<python>": sys.prefix}
        if settings.wheelhouse is not None:
            hidden["<wheelhouse>"] = settings.wheelhouse.resolve()
        for word, folder in hidden.items():
            text = text.replace(str(folder), word)
        return CREDENTIALS.sub("***@", text)


async def _bounded(stream: asyncio.StreamReader) -> str:
    kept = bytearray()
    while piece := await stream.read(LINE_BYTES_MAX):
        kept += piece
        if len(kept) > OUTPUT_BYTES_MAX:
            raise not_installed("The list of resolved packages is too long.")
    return kept.decode("utf-8", "replace")


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill uv and what it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _reason(lines: list[str], status: int) -> str:
    """Give uv's own words from its error on, on one line."""
    first = next((place for place, line in enumerate(lines) if line.startswith("error:")), 0)
    words = " ".join(GLYPHS.sub(" ", " ".join(lines[first:])).split()).removeprefix("error: ")
    words = words.replace(" cause: ", ": ")
    if not words:
        return f"The packages could not be installed: uv ended with status {status}."
    return f"The packages could not be installed: {words[:REASON_CHARS_MAX]}"
