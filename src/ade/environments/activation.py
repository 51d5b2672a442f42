"""The activation folder of a version: what was installed, what its hooks returned, how it ended.

    configs/<configuration>/<sequence>/activation/
        result.json    status, times, interpreter, environment, diagnostics
        install.log    the output of uv, while it runs
        packages.txt   what is installed, with versions
        hooks.json     what `on_activate` returned, and its diagnostics

The holder of the build's lease writes it. A holder that lost its lease keeps writing to a log that
is no longer visible, because each attempt begins a new file.
"""

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any, Protocol, TextIO

from ade.settings import Settings

RESULT, LOG, PACKAGES, HOOKS = "result.json", "install.log", "packages.txt", "hooks.json"
LOG_CHARS_MAX = 1_048_576
CUT = "[the log is cut here]"


class NumberedVersion(Protocol):
    """Name a version by its configuration and its number there."""

    @property
    def configuration_id(self) -> str:
        """Name the configuration."""
        ...

    @property
    def sequence(self) -> int:
        """Return the number of the version in its configuration."""
        ...


class ActivationFolder:
    """Write and read the activation folder of one version."""

    def __init__(self, version: NumberedVersion, settings: Settings) -> None:
        configs = settings.storage_data_dir / "configs"
        self.path = configs / version.configuration_id / str(version.sequence) / "activation"

    def begin(self) -> "Log":
        """Forget an earlier activation and begin a log."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in (RESULT, PACKAGES, HOOKS):
            (self.path / name).unlink(missing_ok=True)
        return Log(self.path)

    def finish(self, result: dict[str, Any], packages: list[str], hooks: dict[str, Any]) -> None:
        """Write how it ended; the result last, because it says that the rest is there."""
        self._write(PACKAGES, "".join(f"{package}\n" for package in packages))
        self._write(HOOKS, json.dumps(hooks, indent=1))
        self._write(RESULT, json.dumps(result, indent=1))

    def result(self) -> dict[str, Any] | None:
        """Read how it ended, if it has."""
        return self._read(RESULT)

    def hooks(self) -> dict[str, Any] | None:
        """Read what the hooks returned, if they were run."""
        return self._read(HOOKS)

    def log(self) -> str | None:
        """Read the log as far as it goes, None if there is none."""
        try:
            return (self.path / LOG).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, text: str) -> None:
        _replace(self.path / name, text)


class Log:
    """Write the output of uv, line by line, up to a limit."""

    def __init__(self, folder: Path) -> None:
        fresh = folder / f".{secrets.token_hex(4)}.log"
        self._file: TextIO = fresh.open("w", encoding="utf-8", errors="replace")
        fresh.replace(folder / LOG)
        self._lines: list[str] = []
        self._left = LOG_CHARS_MAX

    def say(self, line: str) -> None:
        """Write a line where its readers see it at once; a full disk stops no build."""
        if self._left <= 0:
            return
        self._left -= len(line) + 1
        self._lines.append(f"{line if self._left > 0 else CUT}\n")
        with contextlib.suppress(OSError, ValueError):
            self._file.write(self._lines[-1])
            self._file.flush()

    def text(self) -> str:
        """Return what was written, also when another log has taken the place of the file."""
        return "".join(self._lines)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        with fresh.open("w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
