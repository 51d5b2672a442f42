"""Find which layers can be applied on this machine, by applying them.

Levels, from the strongest: `full` (namespaces, Landlock, seccomp), `landlock` (Landlock and seccomp
alone: what Docker's default profile allows). For each configuration a zygote is launched, and a
child tries a handful of harmful acts (`ade_engine.entry.canary`). The level counts only if all of
them fail in the sandbox, and an act counts only if it succeeds without one. Nothing is concluded
from a version number.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ade.domain.limits import Limits
from ade.sandbox.cgroup import CpuGroup
from ade.sandbox.cgroup_v2 import JobBounds, find_groups
from ade.sandbox.child.apply_layers import NAMESPACES
from ade.sandbox.child.plan import FULL, LANDLOCK
from ade.sandbox.folders import closed_to_others
from ade.sandbox.layers import landlock, linux
from ade.sandbox.pool import Layers, Pool, PoolRules
from ade.sandbox.runtime_environment import SOURCE, Environment, own_environment
from ade.sandbox.spec import RunSpec, WorkerBounds
from ade.sandbox.supervisor import SandboxedRun

NONE = "none"
NICE = PoolRules().nice
UNREADABLE = "the interpreter or ADE itself cannot be read:"
UP, WEAKER, MISSING = "up", "weaker", "missing"
RANK = {NONE: 0, LANDLOCK: 1, FULL: 2}
CANARY = "ade_engine.entry.canary"
CANARY_LIMITS = Limits(
    timeout_ms=20_000, cpu_ms=10_000, memory_mb=256, max_output_kb=16, max_artifacts=0
)
SECONDS_MAX = 60.0
CANNOT_JOIN = "] write: "  # in the error of a child that could not write to its cgroup's file
COUNTED = "counted every 25 ms, with a limit per process; no cgroup: shared memory is refused"
LANDLOCK_SCOPED = 6  # the version from which Landlock restricts signals
WHY_NOT_FULL = {
    "user": "jobs share the worker's user namespace",
    "pid": "a job may start no process at all instead",
    "mount": "Landlock limits which files can be read; that a file exists can be seen (stat)",
    "net": "a job may open no socket at all instead",
    "ipc": "System V and POSIX message queues are refused instead",
    "uts": "the host name can be seen",
}


@dataclass(frozen=True, slots=True)
class LayerStatus:
    """Hold the state of one layer, and the reason."""

    name: str
    state: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """Hold the level that is reached, each layer, and how to reach more."""

    level: str
    layers: tuple[LayerStatus, ...]
    remedy: str = ""
    found: Layers | None = None

    def meets(self, least: str) -> bool:
        """Tell whether the level is at least this one."""
        return RANK[self.level] >= RANK[least]

    def as_dict(self) -> dict[str, object]:
        """Return the report for machines."""
        layers = [{"name": w.name, "state": w.state, "detail": w.detail} for w in self.layers]
        return {"level": self.level, "layers": layers, "remedy": self.remedy}


async def probe(user_base: int, scratch: Path | None = None, nice: int = NICE) -> SandboxReport:
    """Try the configurations from the strongest to the weakest; report the first that holds."""
    version = landlock.version()
    if not linux.is_known_machine():
        reason = f"the system calls of {linux.MACHINE} are not known"
        return _nothing({FULL: reason, LANDLOCK: reason})
    harmless = await _control()
    reasons: dict[str, str] = {}
    memory_cgroup, weighs = _memory_groups()
    for layers in _ways(version, user_base, memory_cgroup=memory_cgroup):
        why_not = _unreadable(layers) or await _try(layers, scratch, harmless)
        if layers.memory_cgroup and CANNOT_JOIN in (why_not or ""):
            layers = replace(layers, memory_cgroup=0)  # noqa: PLW2901 - the next best
            why_not = await _try(layers, scratch, harmless)
        if why_not is None:
            return _report(layers, reasons, nice, weighs=weighs)
        reasons[layers.level] = "; ".join(filter(None, (reasons.get(layers.level), why_not)))
    return _nothing(reasons)


def _ways(version: int, user_base: int, *, memory_cgroup: int) -> Iterator[Layers]:
    """List the configurations to try, the strongest first."""
    is_root = os.geteuid() == 0
    base = user_base if is_root else None
    if is_root:
        yield Layers(FULL, version, by_root=True, user_base=base, memory_cgroup=memory_cgroup)
    yield Layers(FULL, version, by_root=False, user_base=base, memory_cgroup=memory_cgroup)
    if version:
        yield Layers(LANDLOCK, version, by_root=False, user_base=base, memory_cgroup=memory_cgroup)


def _memory_groups() -> tuple[int, bool]:
    """Return the version of memory groups, 0 if there are none, and whether they weigh CPU time."""
    groups = find_groups(JobBounds(processes=1, nice=NICE, jobs=1))
    if groups is None:
        return 0, False
    groups.close()
    return groups.VERSION, groups.weighs


def _unreadable(layers: Layers) -> str | None:
    """Return which path a job's own user could not read; None if root mounts it anyway."""
    if layers.by_root or layers.user_base is None:
        return None
    for path in (Path(sys.executable).resolve(), Path(sys.prefix), SOURCE):
        if (folder := closed_to_others((path, *path.parents))) is not None:
            return f"{UNREADABLE} {folder} cannot be read by other users"
    return None


async def _control() -> set[str]:
    """Return the harmful acts of the canary that fail without a sandbox, and so prove nothing."""
    code = "import json; from ade_engine.entry.canary import try_all; print(json.dumps(try_all()))"
    path = str(Path(__file__).parents[2])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-B", "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    try:
        harms: dict[str, bool] = json.loads(output)
    except ValueError:
        return set()
    return {name for name, did_harm in harms.items() if not did_harm}


async def _try(layers: Layers, scratch: Path | None, harmless: set[str]) -> str | None:
    """Run the canary with these layers; return why they do not hold, or None if they do."""
    pool = Pool(layers, PoolRules(spares=0, nice=0), scratch)
    try:
        spec = RunSpec(CANARY, {}, CANARY_LIMITS)
        running = SandboxedRun(
            pool, spec, _bare_environment(), lambda progress: None, WorkerBounds(nice=0)
        )
        async with asyncio.timeout(SECONDS_MAX):
            outcome = await running.outcome()
    except (OSError, TimeoutError) as error:
        return str(error) or "it took too long"
    finally:
        await pool.close()
    if outcome.error is not None:
        return outcome.error.message
    harms: dict[str, bool] = (outcome.result or {})["outputs"]["result_json"]
    broken = sorted(name for name, did_harm in harms.items() if did_harm and name not in harmless)
    return f"a job could: {', '.join(broken)}" if broken else None


def _bare_environment() -> Environment:
    return replace(own_environment(), key="probe", preload=("ade_engine.run_entry", CANARY))


# --- the report -----------------------------------------------------------------------------------


def _report(layers: Layers, reasons: dict[str, str], nice: int, *, weighs: bool) -> SandboxReport:
    full = layers.level == FULL
    found = [
        LayerStatus(name, UP) if full else LayerStatus(name, WEAKER, WHY_NOT_FULL[name])
        for name in NAMESPACES
    ]
    found.append(_landlock_status(layers.landlock))
    found.append(LayerStatus("seccomp", UP, "denied calls are reported by name"))
    found.append(_user_status(layers))
    found.append(_memory_status(layers))
    found.append(_processor_status(nice, weighs=weighs and layers.memory_cgroup > 0))
    remedy = "" if full else _remedy(reasons.get(FULL, ""))
    return SandboxReport(layers.level, tuple(found), remedy, layers)


def _landlock_status(version: int) -> LayerStatus:
    if not version:
        detail = "this kernel has none; the mount namespace limits which files can be reached"
        return LayerStatus("landlock", MISSING, detail)
    if version < LANDLOCK_SCOPED:
        return LayerStatus("landlock", WEAKER, f"version {version} does not restrict signals")
    return LayerStatus("landlock", UP, f"version {version}")


def _user_status(layers: Layers) -> LayerStatus:
    if layers.user_base is not None:
        return LayerStatus("user id", UP, f"jobs run as user ids from {layers.user_base} on")
    return LayerStatus(
        "user id", WEAKER, "jobs run as the worker's own user; the other layers still apply"
    )


def _memory_status(layers: Layers) -> LayerStatus:
    if layers.memory_cgroup:
        version = f"cgroup v{layers.memory_cgroup}"
        return LayerStatus("memory", UP, f"measured every 25 ms; the kernel limits it ({version})")
    return LayerStatus("memory", WEAKER, COUNTED)


def _processor_status(nice: int, *, weighs: bool) -> LayerStatus:
    if not nice:
        return LayerStatus("processor", WEAKER, "jobs run at normal priority: ADE_WORKER_NICE is 0")
    share = CpuGroup.find(nice, jobs=1)
    if share is not None:
        share.close()
    if share is None and not weighs:
        return LayerStatus(
            "processor",
            WEAKER,
            "each process of a job has a low priority, but not the job as a whole; no cgroup",
        )
    return LayerStatus(
        "processor", UP, "a job weighs as much as one process of low priority (cgroup)"
    )


def _nothing(reasons: dict[str, str]) -> SandboxReport:
    layers = tuple(LayerStatus(level, MISSING, reason) for level, reason in reasons.items())
    return SandboxReport(NONE, layers, _remedy(" ".join(reasons.values())))


def _remedy(reason: str) -> str:
    """Return what an operator can do to reach a stronger level."""
    if UNREADABLE in reason:
        return (
            "Jobs run as separate users, and these must be able to read the interpreter and"
            " ADE itself: install them where everybody can read."
        )
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "The container's profile forbids namespaces. Start it with a profile that allows"
            " unshare, clone and mount (Docker: --security-opt seccomp=unconfined"
            " --security-opt apparmor=unconfined, or a profile of your own)."
        )
    return (
        "Allow user namespaces (sysctl user.max_user_namespaces > 0; on Ubuntu also"
        " kernel.apparmor_restrict_unprivileged_userns=0), or start ADE as root."
    )
