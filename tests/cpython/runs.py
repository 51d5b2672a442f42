"""Run one module of CPython's tests: by plain Python as an ordinary user, or as a cell."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.sandbox import launch
from tests.system.cells import cell
from tests.system.server import JOBS, Server

DEBIAN_FOLDER = Path(f"/usr/lib/python3.{sys.version_info.minor}/test")
DATA = tomllib.loads((Path(__file__).parent / "modules.toml").read_text())
SOURCE = (Path(__file__).parent / "cell.py").read_text()
NOBODY = 65_534  # it has a name in every list of users
SECONDS_MAX = 240
LIMITS = {
    "timeout_ms": SECONDS_MAX * 1000,
    "cpu_ms": SECONDS_MAX * 1000,
    "memory_mb": 2048,
    "max_output_kb": 256,
    "max_artifacts": 1000,
}
SETTINGS: dict[str, Any] = {
    "ADE_SANDBOX": "full",
    "ADE_RESULT_MAX_KB": 10_240,
    "ADE_WORKER_PROCESSES_MAX": 512,
    "ADE_WORKER_OPEN_FILES_MAX": 4096,
    "ADE_WORKER_DISK_MB": 1024,
    "ADE_WORKER_TMP_MB": 1024,
    "ADE_WORKER_FSIZE_MB": 1024,
    "ADE_WORKER_FILES_MAX": 100_000,
}
# A test may end the process; it is left out then, and the others run again.
ENDINGS_MAX = 6


@dataclass
class ModuleRun:
    """Say how each test of a module ended: `[outcome, message]` by the name of the test."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    ending: str = ""


def interpreter_lacks(module: str) -> bool:
    """Tell whether the interpreter comes without this module of its tests."""
    try:
        return find_spec(f"test.{module}") is None
    except ModuleNotFoundError:
        return True


def run_plain(module: str, only: Sequence[str] = ()) -> ModuleRun:
    """Run a module by plain Python, in a folder of its own and without the rights of root."""
    return _until_complete(module, only, _plain)


def run_cell(server: Server, module: str, only: Sequence[str] = ()) -> ModuleRun:
    """Run a module as a cell, without the tests that the data leaves out."""
    left_out = {
        name: ["left out", why]
        for name, why in DATA["left_out"].items()
        if name.startswith(f"test.{module}.")
    }
    return _until_complete(module, only, lambda call: _cell(server, call), left_out)


def _until_complete(
    module: str,
    only: Sequence[str],
    run: Callable[[str], tuple[dict[str, list[str]] | None, str, str]],
    left_out: dict[str, list[str]] | None = None,
) -> ModuleRun:
    """Run a module again without the tests that ended the process before its end."""
    folder = str(DEBIAN_FOLDER) if interpreter_lacks(module) else None
    ended = dict(left_out or {})
    ending = ""
    for _ in range(ENDINGS_MAX):
        call = f"run_tests({f'test.{module}'!r}, {folder!r}, {list(ended)!r}, {list(only)!r})"
        tests, ending, stderr = run(call)
        if tests is not None:
            return ModuleRun(tests | ended)
        begun = re.findall(r"^begins (.+)$", stderr, re.MULTILINE)
        if not begun or begun[-1] in ended:
            break
        ended[begun[-1]] = ["ended the process", _where(stderr) or ending]
    return ModuleRun(ended, ending or "no result")


def _where(stderr: str) -> str:
    """Return the innermost function of a test that took too long, if that was the end."""
    _, is_late, stacks = stderr.rpartition("Timeout (")
    main = stacks.rpartition("most recent call first):\n")[2]
    function = re.search(r'File "[^"]*?([^/"]+)", line \d+ in (\w+)', main)
    return f"it takes too long, in {function[1]}: {function[2]}" if is_late and function else ""


def _plain(call: str) -> tuple[dict[str, list[str]] | None, str, str]:
    folder = Path(tempfile.mkdtemp(prefix="ade-cpython-"))
    written = f"import json\nwith open('outcomes.json', 'w') as f:\n    json.dump({call}, f)\n"
    (folder / "cell.py").write_text(f"{SOURCE}\n\nif __name__ == '__main__':\n{_indent(written)}")
    program = [sys.executable, "cell.py"]
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        program = [sys.executable, launch.__file__, "--user", str(NOBODY), "--", *program]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
    }
    try:
        ended = subprocess.run(
            program,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
            start_new_session=True,
            preexec_fn=_heed_signals,
            check=False,
        )
        ending, stderr = f"status {ended.returncode}", ended.stderr
    except subprocess.TimeoutExpired as error:
        ending, stderr = "TIMED_OUT", (error.stderr or b"").decode(errors="replace")
    try:
        return json.loads((folder / "outcomes.json").read_text()), ending, stderr
    except (OSError, ValueError):
        return None, ending, stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _heed_signals() -> None:
    """Restore the signals that a shell ignores for a command in the background."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _cell(server: Server, call: str) -> tuple[dict[str, list[str]] | None, str, str]:
    # A process that the cell spawns imports it, and must not run the tests again.
    source = f"{SOURCE}\n\nif __name__ == '__main__':\n{_indent(call)}"
    asked = cell(source, limits=LIMITS, dedupe=False)
    answer = server.http.post(JOBS, json=asked)
    assert answer.status_code == 202, answer.text
    result = server.result(server.ended_job(answer.json(), SECONDS_MAX + 120))
    outputs = result["outputs"]
    if result["status"] == "SUCCEEDED":
        return outputs["result_json"], "", ""
    error = result["error"]
    return None, f"{error['code']}: {error['message']}", outputs.get("stderr", "")


def _indent(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())
