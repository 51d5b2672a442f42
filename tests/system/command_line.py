"""The command line against a real server: called in this process, or as a process of its own."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.system.server import ADE
from typer.testing import CliRunner, Result

from ade.cli import app
from ade.testing.server import AdeServer

END_SECONDS = 120.0


class Started(subprocess.Popen[str]):
    """A process that does not outlive a test that has failed."""

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Wait for its end; kill it first if the test has failed."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, *error)


@dataclass(frozen=True)
class CommandLine:
    """Call `ade` as somebody who works in a folder of their own."""

    environ: dict[str, str]
    folder: Path

    def __call__(self, *words: object, stdin: str | None = None, **environ: str) -> Result:
        """Run a command in this process."""
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(self.folder)
            given = {**self.environ, "COLUMNS": "250", **environ}
            return CliRunner().invoke(app, [str(word) for word in words], stdin, given)

    def json(self, *words: object) -> Any:
        """Run a command that must succeed, and read what it printed."""
        ended = self(*words, "--json")
        assert ended.exit_code == 0, ended.output
        return json.loads(ended.stdout)

    def start(
        self,
        *words: object,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        environ: dict[str, str] | None = None,
    ) -> "Started":
        """Start a process."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ADE_")}
        return Started(
            [ADE, *map(str, words)],
            env={**clean, **self.environ, **(environ or {})},
            cwd=self.folder,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )


def command_line(folder: Path, server: AdeServer | None = None) -> CommandLine:
    """Make a command line with a home of its own; with a server, log in to it."""
    home = folder / "home"
    home.mkdir()
    work = folder / "work"
    work.mkdir()
    made = CommandLine({"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}, work)
    if server is not None:
        ended = made("login", server.url, stdin=f"{server.key}\n")
        assert ended.exit_code == 0, ended.output
    return made
