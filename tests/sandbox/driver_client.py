"""The test's side of a driver: start it in a mode, send it snippets, read the answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sandbox.modes import Mode

DRIVER = Path(__file__).parent / "driver.py"


class DriverClient:
    """Hold a driver that is ready for snippets."""

    def __init__(
        self,
        mode: Mode | None,
        without: tuple[str, ...] = (),
        *,
        group: Path | None = None,
        scratch: Path | None = None,
        memory_cgroup: int = 0,
    ) -> None:
        """Start a driver; one that is measured has a `group` and a folder for its jobs' files."""
        layers = {"level": "bare"} if mode is None else mode.layers(without)
        layers |= {"memory_cgroup": memory_cgroup} if memory_cgroup else {}
        measured = [] if group is None else ["--group", str(group), "--scratch", str(scratch)]
        program = [sys.executable, "-B", str(DRIVER), json.dumps(layers)]
        self._process = subprocess.Popen(
            program if mode is None else mode.command(program, measured),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            text=True,
            env=os.environ if scratch is None else {**os.environ, "TMPDIR": str(scratch)},
        )
        self.pid = self._process.pid
        self.is_ready = self._answer().get("ready", False)

    def run(self, **asked: Any) -> dict[str, Any]:
        """Run one snippet."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> list[str]:
        """End the driver; return what was left of its jobs."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        left: list[str] = self._answer()["left"]
        assert self._process.stdout is not None
        self._process.stdout.close()
        status = self._process.wait(timeout=20)
        return left if status == 0 else [*left, f"the driver ended with {status}"]

    def end(self) -> None:
        """End the driver, whatever state it is in."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"left": ["the driver died"]}
        return answer
