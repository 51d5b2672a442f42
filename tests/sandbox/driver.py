"""Run snippets for a test: one JSON object per line in, one outcome per line out.

    python driver.py '{"mode": "user", "level": "full", ...}'

The process is the worker of its situation: it owns the pool, runs one snippet after another in it,
and after each looks whether anything of it is left. With the level "bare" it runs them without any
layer, as controls.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.sandbox.surroundings import Surroundings  # noqa: E402

from ade.domain.limits import Limits  # noqa: E402
from ade.domain.outcome import Outcome, located, timed_out_error  # noqa: E402
from ade.sandbox import supervisor, usage  # noqa: E402
from ade.sandbox.layers import landlock  # noqa: E402
from ade.sandbox.pool import Layers, Pool, PoolRules  # noqa: E402
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment  # noqa: E402
from ade.sandbox.spec import RunSpec, WorkerBounds  # noqa: E402
from ade.sandbox.supervisor import SandboxedRun  # noqa: E402
from ade_engine.entry.cell import cell_inputs  # noqa: E402

# As little as may be: snippets are given seconds, and would starve beside the tests of others.
NICE = 1
RULES = PoolRules(job_mb=16, tmp_mb=8, inodes=2_000, processes=32, open_files=64, nice=NICE)
BOUNDS = WorkerBounds(file_mb=8, result_bytes=256 * 1024, artifact_mb=8, nice=NICE)
LIMITS = {"timeout_ms": 8_000, "cpu_ms": 2_000, "memory_mb": 64, "max_output_kb": 16}
PATIENCE_SECONDS = 10.0
HELD_SECONDS = 2.0  # how long a snippet keeps what it took: longer than any watch looks away
HELD_SECONDS_BARE = 0.05
LOOK_SECONDS = 0.01
SERVER_COMPANION = """
import time
open("companion", "w").write(secret)
time.sleep(30)
"""


class Driver:
    """Run snippets in one pool."""

    def __init__(self, layers: dict[str, Any], around: Surroundings, scratch: Path) -> None:
        self._layers = layers
        self._around = around
        self._scratch = scratch
        known = {"landlock": landlock.version(), **layers, "without": tuple(layers["without"])}
        self._pool = Pool(Layers(**known), RULES, scratch)
        self._environment = Environment(
            key="tests",
            interpreter=Path(sys.executable),
            preload=RUNTIME,
            readable=(*own_environment().readable, around.readable),
        )
        self._descriptors = 0
        supervisor.STOP_GRACE_SECONDS = 0.2

    async def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run one snippet, and say what came of it and what it left."""
        around = self._around
        around.victim  # noqa: B018 - it is started by being looked at
        around.look()
        facts = around.facts() | {"patience": HELD_SECONDS} | asked.get("parameters", {})
        async with self._companion(asked) as companion:
            started = time.monotonic()
            running = self._start(asked, asked["source"], facts | companion)
            outcome, is_late = await self._within(running, asked)
            seconds = time.monotonic() - started
            traces = around.traces()
            artifacts = self._artifacts()
            if companion and not companion["companion_lives"]():
                traces.append("the companion is no longer what it was")
        return {
            **_told(outcome, is_late),
            "seconds": round(seconds, 3),
            "traces": traces,
            "kept": artifacts,
            "left": await self._left(),
        }

    def _start(self, asked: dict[str, Any], source: str, facts: dict[str, Any]) -> SandboxedRun:
        limits = {**LIMITS, "max_artifacts": 5, **asked.get("limits", {})}
        parameters = {name: value for name, value in facts.items() if not callable(value)}
        spec = RunSpec(
            entry="ade_engine.entry.cell",
            inputs=cell_inputs(source, parameters, asked.get("entrypoint")),
            limits=Limits(**limits),
            folder=self._around.kept,
            network=asked.get("network", False),
        )
        return SandboxedRun(self._pool, spec, self._environment, lambda progress: None, BOUNDS)

    async def _within(self, running: SandboxedRun, asked: dict[str, Any]) -> tuple[Outcome, bool]:
        """Wait as the worker does, for a job that is asked to stop or one whose time is up."""
        is_late = False

        def stop() -> None:
            nonlocal is_late
            is_late = True
            if asked.get("is_timed"):
                running.time_out()
            else:
                running.stop()

        timeout_ms = {**LIMITS, **asked.get("limits", {})}["timeout_ms"]
        timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, stop)
        try:
            return await running.outcome(), is_late
        finally:
            timer.cancel()

    @contextlib.asynccontextmanager
    async def _companion(self, asked: dict[str, Any]) -> Any:
        """Run another job beside the snippet, which the snippet knows of."""
        if not asked.get("companion"):
            yield {}
            return
        secret = {"secret": self._around.secret}
        running = self._start({"limits": {"timeout_ms": 60_000}}, SERVER_COMPANION, secret)
        ending = asyncio.create_task(running.outcome())
        child = await _eventually(lambda: running._child)
        folder = await _eventually(lambda: child.folder if child.folder >= 0 else None)
        await _eventually(lambda: _content(folder) == self._around.secret)
        yield {
            "companion_pid": child.pid,
            "companion_folder": str(child.scratch or ""),
            "companion_namespaces": namespaces_of(child.pid),
            "companion_lives": lambda: (
                not ending.done() and _content(folder) == self._around.secret
            ),
        }
        running.kill()
        await ending

    def _artifacts(self) -> dict[str, str]:
        kept = self._around.kept
        collected = kept / "artifacts"
        found = {
            str(path.relative_to(collected)): path.read_bytes()[:100].decode(errors="replace")
            for path in kept.rglob("*")
            if path.is_file()
        }
        shutil.rmtree(kept)
        kept.mkdir(mode=0o700)
        return found

    # --- what is left ---------------------------------------------------------------------------

    async def _left(self) -> list[str]:
        """Wait until only zygotes and their spares are there; say what else stays."""
        left: list[str] = []
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            left = self._more_than_usual()
            if not left:
                break
            await asyncio.sleep(LOOK_SECONDS)
        return left

    def _more_than_usual(self) -> list[str]:
        pool = self._pool
        spares = [child for children in pool._spares.values() for child in children]
        usual = {os.getpid(), self._around.victim.pid}
        usual |= {zygote.pid for zygote in pool.zygotes} | {child.pid for child in spares}
        usual |= {zygote._launched for zygote in pool.zygotes}  # dead, and buried with its zygote
        left = [
            f"process {pid} {_name(pid)}" for pid in usage.tree(os.getpid()) if pid not in usual
        ]
        if pool._filling:
            left.append("a spare is being made")
        folders = {str(child.scratch) for child in spares if child.scratch}
        for zygote in pool.zygotes:
            if zygote.plan.scratch:
                here = {f"{zygote.plan.scratch}/{name}" for name in _listed(zygote.plan.scratch)}
                left += [f"folder {path}" for path in here - folders]
        scratches = {zygote.plan.scratch for zygote in pool.zygotes}
        left += [f"scratch {p}" for p in self._scratch.iterdir() if str(p) not in scratches]
        opened = len(os.listdir("/proc/self/fd"))
        usually = self._descriptors + self._held(len(pool.zygotes), spares)
        if self._descriptors and opened != usually:
            left.append(f"{opened} descriptors, not {usually}")
        return left

    def _held(self, zygotes: int, spares: list[Any]) -> int:
        """Count the descriptors that the pool, its zygotes and spares are known to hold."""
        of_pool = self._pool._share is not None
        of_spares = sum(
            1
            + sum(
                getattr(child, name) >= 0
                for name in ("stdout", "stderr", "pidfd", "folder", "listener")
            )
            for child in spares
        )
        return of_pool + 2 * zygotes + of_spares

    async def warm_up(self) -> None:
        """Run a first job, and count the descriptors that are always open."""
        report = await self.run({"source": "1 + 1"})
        if report["verdict"] != "succeeded":
            raise RuntimeError(f"the first job failed: {report}")
        spares = [child for children in self._pool._spares.values() for child in children]
        held = self._held(len(self._pool.zygotes), spares)
        self._descriptors = len(os.listdir("/proc/self/fd")) - held

    async def close(self) -> list[str]:
        """Close the pool; say what is left of it."""
        await self._pool.close()
        until = time.monotonic() + PATIENCE_SECONDS
        left: list[str] = []
        while time.monotonic() < until:
            usual = {os.getpid(), self._around.victim.pid}
            left = [f"process {p} {_name(p)}" for p in usage.tree(os.getpid()) if p not in usual]
            left += [f"scratch {path}" for path in self._scratch.iterdir()]
            if self._descriptors and len(os.listdir("/proc/self/fd")) != self._descriptors:
                left.append("descriptors")
            if not left:
                break
            await asyncio.sleep(LOOK_SECONDS)
        return left


class Bare:
    """Run snippets in plain processes, to see that they would do harm."""

    def __init__(self, around: Surroundings, scratch: Path) -> None:
        self._around = around
        self._scratch = scratch

    async def run(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run one snippet, say what it did, and put everything right."""
        around = self._around
        around.victim  # noqa: B018
        around.look()
        facts = around.facts()
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        parameters = facts | {
            "companion_namespaces": namespaces_of(os.getpid()),
            "patience": HELD_SECONDS_BARE,
            "companion_pid": around.victim.pid,
            "companion_folder": str(around.outside),
        }
        inputs = cell_inputs(asked["source"], parameters, None)
        given = {"folder": str(folder), "source_folder": str(ROOT / "src"), "inputs": inputs}
        timeout_ms = {**LIMITS, **asked.get("limits", {})}["timeout_ms"]
        value, words = await asyncio.to_thread(self._run, json.dumps(given), timeout_ms / 1000 + 5)
        await asyncio.sleep(LOOK_SECONDS)  # so that the sensors are read
        traces = around.traces()
        around.put_right()
        remove(folder)
        return {"value": value, "traces": traces, "stderr": words[-2000:]}

    def _run(self, given: str, timeout_seconds: float) -> tuple[Any, str]:
        """Wait for the process alone: what it leaves may hold its outputs open."""
        program = [sys.executable, "-I", "-B", str(ROOT / "tests/sandbox/run_unsandboxed.py")]
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
            child = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=words,
                start_new_session=True,
            )
            try:
                assert child.stdin is not None
                child.stdin.write(given.encode())
                child.stdin.close()
                child.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            answer.seek(0)
            words.seek(0)
            said = answer.read()
            return json.loads(said) if said else None, words.read(100_000).decode(errors="replace")

    async def warm_up(self) -> None:
        """Do nothing: there is nothing to warm."""

    async def close(self) -> list[str]:
        """Say what is left."""
        return [str(path) for path in self._scratch.iterdir()]


def _told(outcome: Outcome, is_late: bool) -> dict[str, Any]:
    result = outcome.result or {}
    error = outcome.error
    if is_late and error is not None:
        error = located(timed_out_error(0), outcome.location)
    return {
        "verdict": outcome.status.value if error is None else f"{error.category}/{error.code}",
        "message": error.message if error else "",
        "details": error.details if error else {},
        "outputs": result.get("outputs", {}),
        "artifacts": [file.name for file in outcome.files],
        "logs": [log["message"] for log in result.get("logs", [])],
        "usage": outcome.usage,
        "isolation": outcome.isolation,
    }


def namespaces_of(pid: int) -> dict[str, str]:
    """Return which namespaces a process is in."""
    names = ("user", "pid", "mnt", "net", "ipc", "uts")
    with contextlib.suppress(PermissionError):  # in a container a slot user's are not shown
        return {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in names}
    return {}


def remove(folder: Path) -> None:
    """Remove a folder, however deep it is."""
    subprocess.run(["/bin/rm", "-rf", str(folder)], check=False)


async def _eventually(look: Any) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if found := look():
                return found
            await asyncio.sleep(LOOK_SECONDS)


def _content(folder: int) -> str:
    try:
        opened = os.open("companion", os.O_RDONLY, dir_fd=folder)
    except OSError:
        return ""
    with open(opened, encoding="utf-8") as file:
        return file.read()


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()[:200].decode(errors="replace")
    except OSError:
        return "(gone)"


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


async def main() -> None:
    """Serve until stdin ends, then say what is left."""
    layers = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    scratch = Path(tempfile.mkdtemp(prefix="ade-scratch-"))
    os.chmod(scratch, 0o711)  # so that slot users may pass
    async with Surroundings() as around:
        is_bare = layers["level"] == "bare"
        driver = Bare(around, scratch) if is_bare else Driver(layers, around, scratch)

        def say(words: Any) -> None:
            answers.write(json.dumps(words) + "\n")
            answers.flush()

        try:
            await driver.warm_up()
            say({"ready": True})
            while line := await reader.readline():
                try:
                    say(await driver.run(json.loads(line)))
                except Exception as error:  # the test shows it
                    say({"verdict": f"driver: {type(error).__name__}: {error}"})
        finally:
            with contextlib.suppress(BrokenPipeError):  # the caller may be gone
                say({"left": await driver.close()})
            remove(scratch)


if __name__ == "__main__":
    asyncio.run(main())
