"""An environment's own code, run at the start of its interpreter, runs in the sandbox too.

A `.pth` file and a `sitecustomize` run before anything of ours does, even with `python -I`. Here
they try to get out, and leave word of how it went where a job can read it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.processes import aeventually
from tests.sandbox.zygote_chaos import LIMITS, own_layers

from ade.domain.outcome import Outcome
from ade.sandbox.child import zygote_messages
from ade.sandbox.layers import landlock
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun
from ade.sandbox.zygote_client import ZygoteGone
from ade_engine.entry.cell import cell_inputs

ATTACK = """
import builtins, os, socket
def attempt(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__
    return "harm"
tried = [
    attempt(lambda: socket.create_connection(("127.0.0.1", {port}), timeout=1)),
    attempt(lambda: open("{outside}/planted", "w")),
    attempt(lambda: open("{outside}/secret").read()),
    attempt(lambda: open("/proc/{worker}/environ").read()),
    attempt(lambda: os.kill({worker}, 0)),
    attempt(lambda: os.setuid(0)),
]
builtins.tried = getattr(builtins, "tried", []) + [("{who}", tried)]
"""
JOB = "import builtins\nsorted(set((who, tuple(tried)) for who, tried in builtins.tried))"


@pytest.fixture
def outside() -> Iterator[Path]:
    """Make a folder outside of everything that a job may see."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o777)
        (Path(name) / "secret").write_text("secret")
        yield Path(name)


@pytest.fixture
def venv() -> Iterator[Path]:
    """Make an environment, where others may reach it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        made = Path(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
        yield made


def _packages(venv: Path) -> Path:
    return next(venv.glob("lib/python*/site-packages"))


def _environment(venv: Path, **more: Any) -> Environment:
    return Environment(
        key=str(venv),
        interpreter=venv / "bin" / "python",
        preload=RUNTIME,
        readable=(*own_environment().readable, venv),
        **more,
    )


async def _run(environment: Environment, source: str, layers: Layers | None = None) -> Outcome:
    pool = Pool(layers or own_layers(), PoolRules())
    inputs = cell_inputs(source, entrypoint=None)
    spec = RunSpec("ade_engine.entry.cell", inputs, LIMITS)
    try:
        return await SandboxedRun(
            pool, spec, environment, lambda progress: None, WorkerBounds()
        ).outcome()
    finally:
        await pool.close()


@pytest.mark.parametrize("is_cold", [False, True], ids=["zygote", "cold"])
async def test_code_at_the_interpreters_start_gets_nowhere(
    venv: Path, outside: Path, is_cold: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        facts = {"port": server.getsockname()[1], "outside": outside, "worker": os.getpid()}
        packages = _packages(venv)
        (packages / "evil.py").write_text(ATTACK.format(who="pth", **facts))
        (packages / "evil.pth").write_text("import evil\n")
        (packages / "sitecustomize.py").write_text(ATTACK.format(who="sitecustomize", **facts))
        outcome = await _run(_environment(venv, cold=is_cold), JOB)
        assert outcome.error is None, outcome.error
        assert outcome.result is not None
        tried = outcome.result["outputs"]["result_json"]
        assert [who for who, _ in tried] == ["pth", "sitecustomize"], "they did not run at all"
        assert not any("harm" in what for _, what in tried), tried
        assert not (outside / "planted").exists()
        with pytest.raises(BlockingIOError):
            await asyncio.to_thread(server.accept)


STREAMS = """
import os, random, sys
print("to stdout \\ud800")
print("to stderr", file=sys.stderr)
os.write(1, b"by number\\n")
random.random()
is_home = os.environ["HOME"] == os.getcwd()
[sys.stdin.read(), sys.stdout.seekable(), sys.stdout.line_buffering, is_home]
"""


@pytest.mark.parametrize("is_cold", [False, True], ids=["zygote", "cold"])
async def test_streams_and_surroundings_are_the_same_cold_and_warm(
    venv: Path, is_cold: bool
) -> None:
    outcome = await _run(_environment(venv, cold=is_cold), STREAMS)
    assert outcome.error is None, outcome.error
    assert outcome.result is not None
    assert outcome.result["outputs"] == {
        "stdout": "to stdout \\ud800\nby number\n",
        "stderr": "to stderr\n",
        "result_json": ["", False, True, True],
    }


async def test_an_environment_that_does_not_start_is_an_internal_error(venv: Path) -> None:
    (_packages(venv) / "sitecustomize.py").write_text("import os; os._exit(0)")
    outcome = await _run(_environment(venv), "1")
    assert outcome.error is not None
    assert outcome.error.code == "ZYGOTE_LOST"


async def test_an_environment_that_leaves_threads_runs_cold(venv: Path) -> None:
    code = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    (_packages(venv) / "sitecustomize.py").write_text(f"import threading, time\n{code}\n")
    outcome = await _run(_environment(venv), "6 * 7")
    assert outcome.error is None, outcome.error
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"] == 42


IMPOSTOR = """
import os, socket, struct, time
line = socket.socket(fileno=os.dup(3))
if {is_child} or os.fork() == 0:
    line.send(struct.pack("=IiQQQQ", {kind}, 0, {number}, 0, 0, 0))
    os.write(2, b"said")
time.sleep(600)
"""


def _impostor(venv: Path, kind: int, number: int = 0, *, is_child: bool = False) -> None:
    """Let the environment speak in the zygote's name, and then do nothing."""
    code = IMPOSTOR.format(kind=kind, number=number, is_child=is_child)
    (_packages(venv) / "sitecustomize.py").write_text(code)


async def _close(pool: Pool, taking: "asyncio.Task[Any]") -> None:
    taking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await taking
    await pool.close()


def _processes_of(venv: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(venv).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


async def test_a_zygote_that_lets_another_speak_for_it_dies(venv: Path) -> None:
    _impostor(venv, zygote_messages.HELLO)
    pool = Pool(own_layers(), PoolRules())
    try:
        with pytest.raises(ZygoteGone, match="sent by another process"):
            await pool.take(_environment(venv))
        await aeventually(lambda: not _processes_of(venv), seconds=5)
    finally:
        await pool.close()
        for pid in _processes_of(venv):
            os.kill(pid, signal.SIGKILL)


async def test_a_zygote_cannot_have_another_process_killed(venv: Path) -> None:
    """Without namespaces only the zygote itself reports which process it is."""
    with subprocess.Popen(["/bin/sleep", "60"]) as victim:  # noqa: ASYNC220 - it starts at once
        _impostor(venv, zygote_messages.LAUNCHED, victim.pid, is_child=True)
        pool = Pool(Layers("landlock", landlock.version(), False, None), PoolRules())
        try:
            with pytest.raises(ZygoteGone, match="not expected"):
                await pool.take(_environment(venv))
            await pool.close()
            assert victim.poll() is None, "the worker killed whom the zygote named"
        finally:
            victim.kill()
            for pid in _processes_of(venv):
                os.kill(pid, signal.SIGKILL)


async def test_a_closed_pool_launches_nothing() -> None:
    pool = Pool(own_layers(), PoolRules())
    taking = asyncio.create_task(pool.take(own_environment()))
    await aeventually(lambda: pool.zygotes)
    await pool.close()
    try:
        with pytest.raises(ZygoteGone):
            await taking
        assert pool.zygotes == []
    finally:
        await pool.close()


NOTICED = """
import os
calls = []
os.register_at_fork(
    before=lambda: calls.append("before first"),
    after_in_child=lambda: calls.append("in the child"),
    after_in_parent=lambda: calls.append("in the parent"),
)
os.register_at_fork(before=lambda: calls.append("before second"), after_in_child=lambda: 1 / 0)
"""


@pytest.mark.parametrize("level", ["full", "landlock"])
async def test_packages_are_notified_once_of_the_fork_of_a_child(venv: Path, level: str) -> None:
    (_packages(venv) / "noticed.py").write_text(NOTICED)
    environment = _environment(venv)
    environment = replace(environment, preload=(*environment.preload, "noticed"))
    layers = None if level == "full" else Layers("landlock", landlock.version(), False, None)
    outcome = await _run(environment, "import noticed\nnoticed.calls", layers)
    assert outcome.error is None, outcome.error
    assert outcome.result is not None
    assert outcome.result["outputs"]["result_json"] == [
        *("before second", "before first"),
        "in the child",
    ]
