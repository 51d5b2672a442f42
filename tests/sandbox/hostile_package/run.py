"""Run jobs of a hostile environment, as the worker of a situation: `run.py '{"attack": ...}'`.

Prints what is left of the worker's surroundings. If the attack ends this process, it prints
nothing.
"""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.sandbox.hostile_package import wheel  # noqa: E402

from ade.domain.limits import Limits  # noqa: E402
from ade.domain.outcome import Outcome  # noqa: E402
from ade.environments.environment import _with_packages  # noqa: E402
from ade.sandbox.layers import landlock  # noqa: E402
from ade.sandbox.pool import Layers, Pool, PoolRules  # noqa: E402
from ade.sandbox.runtime_environment import RUNTIME, Environment, own_environment  # noqa: E402
from ade.sandbox.spec import RunSpec, WorkerBounds  # noqa: E402
from ade.sandbox.supervisor import SandboxedRun  # noqa: E402
from ade_engine.entry.cell import cell_inputs  # noqa: E402

LIMITS = Limits(timeout_ms=20_000, cpu_ms=10_000, memory_mb=256, max_output_kb=16, max_artifacts=9)
SECRET = "the secret of another tenant"
COMPANION = f"""
import os, time
os.makedirs("artifacts", exist_ok=True)
with open("artifacts/secret", "w") as file:
    file.write({SECRET!r})
time.sleep(60)
"""
ORDINARY = """
import os
os.makedirs("artifacts", exist_ok=True)
open("artifacts/own", "w").write("own")
6 * 7
"""
LOOK_SECONDS = 0.01
SECONDS_MAX = 25.0


class Tenants:
    """Run the jobs of several environments in one pool."""

    def __init__(self, layers: dict[str, Any], place: Path) -> None:
        known = {"landlock": landlock.version(), **layers, "without": tuple(layers["without"])}
        self.place = place
        scratch = place / "scratch"
        scratch.mkdir()
        scratch.chmod(0o711)
        self.pool = Pool(Layers(**known), PoolRules(job_mb=16, inodes=2_000), scratch)
        self.own = Environment(
            key="own",
            interpreter=Path(sys.executable),
            preload=RUNTIME,
            readable=own_environment().readable,
        )

    def hostile(self, packages: Path) -> Environment:
        """Return the environment of a build that has the wheel among its requirements."""
        own = own_environment()
        return Environment(
            key="hostile",
            interpreter=Path(sys.executable),
            paths=_with_packages(own.paths, packages),
            preload=(*RUNTIME, "polars"),
            readable=(*own.readable, packages.parent),
        )

    def start(self, environment: Environment, source: str, name: str) -> SandboxedRun:
        """Begin one job, whose files are collected into a folder of this name."""
        folder = self.place / name
        folder.mkdir(mode=0o700)
        spec = RunSpec(
            "ade_engine.entry.cell", cell_inputs(source, entrypoint=None), LIMITS, folder=folder
        )
        return SandboxedRun(self.pool, spec, environment, lambda progress: None, WorkerBounds())

    def collected(self, name: str) -> dict[str, str]:
        """Return the files that were collected of a job."""
        files = [path for path in (self.place / name).rglob("*") if path.is_file()]
        return {path.name: path.read_text() for path in files}


async def attacked(layers: dict[str, Any], attack: str, place: Path) -> dict[str, Any]:
    """Run a job beside a hostile environment, then one of its own, then an ordinary one."""
    tenants = Tenants(layers, place)
    victim = subprocess.Popen(  # noqa: ASYNC220 - it starts at once
        ["/bin/sleep", "120"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    another = tenants.start(tenants.own, COMPANION, "another")
    beside = asyncio.create_task(another.outcome())
    try:
        child = await _eventually(lambda: another._child or beside.done())
        if beside.done():
            raise RuntimeError(f"the job beside the attack ended: {beside.result()}")
        await _eventually(lambda: _has_artifact(child.folder))
        private = _private(place / "environment")
        facts = {
            "attack": attack,
            "server": os.getpid(),
            "victim": victim.pid,
            # With users of their own, only its owner and root find the folder of another job.
            "folder": str(private if layers["user_base"] else child.scratch or private),
        }
        packages = wheel.install(place / "environment", facts)
        facts_before = _facts(private, child)
        hostile = tenants.start(tenants.hostile(packages), ORDINARY, "hostile")
        ending = asyncio.create_task(hostile.outcome())
        await _eventually(lambda: hostile._child or ending.done())
        if attack.startswith("kill"):
            hostile.kill()
        outcome = await asyncio.wait_for(ending, SECONDS_MAX)
        after = await tenants.start(tenants.own, ORDINARY, "after").outcome()
        return {
            "outcome": _told(outcome),
            "collected": tenants.collected("hostile"),
            "after": [_told(after), tenants.collected("after")],
            "victim_lives": victim.poll() is None,
            "another_lives": not beside.done(),
            "unchanged": _facts(private, child) == facts_before,
        }
    finally:
        another.kill()
        await beside
        await tenants.pool.close()
        victim.kill()
        victim.wait()


def _private(environment: Path) -> Path:
    """Make a folder that only the worker's user may read, where the zygote sees its name."""
    environment.mkdir()
    private = environment / "private"
    (private / "artifacts").mkdir(parents=True)
    (private / "artifacts" / "secret").write_text(SECRET)
    private.chmod(0o700)
    return private


def _facts(private: Path, child: Any) -> list[Any]:
    """Return what an attack could change: owners of folders, the worker's groups and limits."""
    folders = [private.stat(), os.fstat(child.folder)]
    return [
        [(each.st_uid, each.st_gid, each.st_mode) for each in folders],
        Path("/proc/self/cgroup").read_text(),
        resource.getrlimit(resource.RLIMIT_CPU),
    ]


def _has_artifact(folder: int) -> bool:
    try:
        return os.stat("artifacts/secret", dir_fd=folder).st_size > 0
    except OSError:
        return False


def _told(outcome: Outcome) -> str:
    error = outcome.error
    return outcome.status.value if error is None else f"{error.category}/{error.code}"


async def _eventually(look: Any) -> Any:
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            if found := look():
                return found
            await asyncio.sleep(LOOK_SECONDS)


def main() -> None:
    """Run one attack, and print what came of it."""
    asked = json.loads(sys.argv[1])
    place = Path(tempfile.mkdtemp(prefix="ade-tenants-", dir="/var/tmp"))
    place.chmod(0o711)
    try:
        found = asyncio.run(attacked(asked["layers"], asked["attack"], place))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
