"""A pool of zygotes within a memory budget, each with a child that is ready in advance.

Forking a child and applying its layers takes milliseconds; a spare child has done that before its
job comes. It still serves one job only. The least recently used zygotes are closed when the budget
is exceeded. A zygote is replaced when it dies and after a number of forks; a replaced one lives
until its children have ended.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from ade.domain.units import MIB
from ade.sandbox.cgroup import CpuGroup
from ade.sandbox.cgroup_v2 import JobBounds, find_groups
from ade.sandbox.child.apply_layers import NAMESPACES
from ade.sandbox.child.plan import LANDLOCK, ZygotePlan
from ade.sandbox.folders import abandoned, own_name, remove_tree
from ade.sandbox.runtime_environment import SOURCE, Environment
from ade.sandbox.spec import over_bytes_max
from ade.sandbox.zygote_child import Child
from ade.sandbox.zygote_client import SetupFailed, ZygoteClient, ZygoteGone, ZygoteTooSlow

log = structlog.get_logger()
SPAWN_TRIES = 2
# The next spare is made when a job has ended, or has run for so long: a fork beside a job that
# takes a few milliseconds would slow it down by a fifth.
REFILL_SECONDS = 0.02
# After the end of a job its result goes first.
REFILL_AFTER_SECONDS = 0.001
USERS_MAX = 64


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Hold the limits of a pool, and of the jobs in it."""

    memory_mb_max: int = 1024
    forks_per_zygote_max: int = 5_000
    spares: int = 1
    job_mb: int = 256
    tmp_mb: int = 64
    inodes: int = 10_000
    processes: int = 64
    open_files: int = 256
    nice: int = 5
    jobs_at_once: int = 2


@dataclass(frozen=True, slots=True)
class Layers:
    """Describe the layers that can be applied on this machine; see `ade.sandbox.probe`."""

    level: str
    landlock: int
    by_root: bool
    user_base: int | None
    memory_cgroup: int = 0  # the version of the interface; 0 if there are no groups
    without: tuple[str, ...] = ()


class Pool:
    """Hand out children that are ready to run a job."""

    def __init__(self, layers: Layers, rules: PoolRules, scratch: Path | None = None) -> None:
        self.layers = layers
        self._rules = rules
        self._scratch = scratch
        self._zygotes: dict[tuple[str, bool], list[ZygoteClient]] = {}
        self._retired: set[ZygoteClient] = set()
        self._spares: dict[ZygoteClient, list[Child]] = {}
        self._orders: dict[ZygoteClient, int] = {}
        self._spawning: dict[ZygoteClient, asyncio.Lock] = {}
        self._filling: set[asyncio.Task[None]] = set()
        self._users = itertools.cycle(range(USERS_MAX))
        self._cold: set[str] = set()
        bounds = JobBounds(self.threads_max, rules.nice, rules.jobs_at_once)
        self._groups = find_groups(bounds) if layers.memory_cgroup else None
        self._share = CpuGroup.find(rules.nice, rules.jobs_at_once) if rules.nice else None
        self._closed = False

    @property
    def zygotes(self) -> list[ZygoteClient]:
        """List the zygotes that live."""
        current = [zygote for zygotes in self._zygotes.values() for zygote in zygotes]
        return [*current, *self._retired]

    @property
    def folder_bounds(self) -> tuple[int, int]:
        """Return how many MiB and entries a job's folder may have."""
        return self._rules.job_mb, self._rules.inodes

    @property
    def threads_max(self) -> int:
        """Return how many processes and threads a job may have, one more than the kernel allows."""
        return self._rules.processes + 1

    def limit_memory(self, child: Child, memory_mb: int) -> None:
        """Set the kernel's memory limit of a child, if it is in a cgroup.

        Where the files of the job's folder are in memory too, they have their own limits, and this
        limit leaves room for them; the supervisor bounds what the processes use.
        """
        if child.group is None:
            return
        if self.layers.level == LANDLOCK:
            child.group.limit(over_bytes_max(memory_mb * MIB) // MIB)
        else:
            child.group.limit(memory_mb + self._rules.job_mb + 2 * self._rules.tmp_mb)

    def isolation(self, *, network: bool) -> tuple[str, ...]:
        """Name the layers that are applied to a job."""
        layers = self.layers
        names = []
        if layers.level != LANDLOCK:
            names += [name for name in NAMESPACES if name != "net" or not network]
        if layers.landlock:
            names.append("landlock")
        names.append("seccomp")
        if layers.user_base is not None:
            names.append("slot_user")
        if layers.memory_cgroup:
            names.append("cgroup")
        if network:
            names.append("network_allowed")
        return tuple(name for name in names if name not in layers.without)

    async def take(self, environment: Environment, *, network: bool = False) -> Child:
        """Return a child that is ready for one job."""
        for attempt in range(SPAWN_TRIES):
            if self._closed:
                raise ZygoteGone("the pool is closed")
            zygote = self._zygote(environment, network=network)
            self._orders[zygote] = self._orders.get(zygote, 0) + 1
            try:
                await asyncio.shield(zygote.started)
                if zygote.is_cold and not zygote.plan.cold:
                    # Its imports left threads or open files, which a fork would lose or share.
                    log.warning(
                        "modules cannot be preloaded, so jobs that need them start more slowly",
                        modules=list(environment.preload),
                    )
                    self._cold.add(environment.key)
                    zygote.close()
                    continue
                child = await self._child(zygote)
            except BaseException as error:
                self._ended(zygote)
                is_last = attempt == SPAWN_TRIES - 1 or isinstance(error, ZygoteTooSlow)
                if is_last or not isinstance(error, ZygoteGone | SetupFailed):
                    raise
            else:
                self._refill(zygote)
                return child
        raise ZygoteGone("no zygote stays alive")

    def warm(self, environment: Environment) -> None:
        """Start an environment's zygote, with a spare child, before a job needs it."""
        self._fill_soon(self._zygote(environment, network=False))

    async def prepare(self, environment: Environment) -> bool:
        """Start an environment's zygote in advance, and wait until it can be used.

        Return False, and start nothing, if zygotes use more than half of their memory.
        """
        used_kb = sum(zygote.memory_kb for zygote in self.zygotes)
        if self._closed or used_kb > self._rules.memory_mb_max * 1024 // 2:
            return False
        zygote = self._zygote(environment, network=False)
        await asyncio.shield(zygote.started)
        if zygote.is_cold and not zygote.plan.cold:
            self._cold.add(environment.key)
            zygote.close()
        else:
            self._refill(zygote)
        return True

    # --- zygotes --------------------------------------------------------------------------------

    def _zygote(self, environment: Environment, *, network: bool) -> ZygoteClient:
        """Find the zygote for an environment, or launch one."""
        key = (environment.key, network)
        zygotes = self._zygotes.setdefault(key, [])
        if environment.key in self._cold:
            environment = replace(environment, cold=True)
        for zygote in list(zygotes):
            if zygote.forked >= self._rules.forks_per_zygote_max:
                self._retire(zygote)
        # Without namespaces a zygote has one child at a time, because children share its user.
        free = [zygote for zygote in zygotes if self._has_room(zygote)]
        if free:
            return free[0]
        zygote = ZygoteClient(self._plan(environment, network=network), self._forget)
        zygotes.append(zygote)
        self._make_room(zygote)
        return zygote

    def _has_room(self, zygote: ZygoteClient) -> bool:
        return self.layers.level != LANDLOCK or not self._orders.get(zygote)

    def _plan(self, environment: Environment, *, network: bool) -> ZygotePlan:
        user = -1
        if self.layers.user_base is not None:
            user = self.layers.user_base + next(self._users)
        rules = self._rules
        return ZygotePlan(
            level=self.layers.level,
            interpreter=str(environment.interpreter),
            source=str(SOURCE),
            paths=[str(path) for path in environment.paths],
            preload=list(environment.preload),
            readable=[str(path) for path in (*environment.readable, SOURCE)],
            cold=environment.cold,
            network=network,
            user=user,
            by_root=self.layers.by_root,
            scratch=self._new_scratch(user) if self.layers.level == LANDLOCK else "",
            landlock=self.layers.landlock,
            memory_group=bool(self.layers.memory_cgroup),
            job_mb=rules.job_mb,
            tmp_mb=rules.tmp_mb,
            shared_mb=rules.tmp_mb,
            inodes=rules.inodes,
            processes=rules.processes,
            open_files=rules.open_files,
            without=list(self.layers.without),
        )

    def _new_scratch(self, user: int) -> str:
        """Make the private folder below which a zygote's children work."""
        base = self._scratch or Path(tempfile.gettempdir())
        for left in abandoned(base):  # in a thread: it may hold deep trees
            asyncio.get_running_loop().run_in_executor(None, remove_tree, left)
        folder = base / own_name()
        folder.mkdir(mode=0o700, parents=True)
        if user != -1:
            # The user may pass and no more: whoever may rename a child's folder could put a link
            # in its place, before the worker gives the folder to the user.
            os.chown(folder, -1, user)
            folder.chmod(0o710)
        return str(folder)

    def _forget(self, zygote: ZygoteClient) -> None:
        """Forget a zygote that has died, and its spares."""
        self._retired.discard(zygote)
        self._orders.pop(zygote, None)
        self._spawning.pop(zygote, None)
        self._pass_over(zygote)
        for child in self._spares.pop(zygote, []):
            self._let_go(child)

    def _retire(self, zygote: ZygoteClient) -> None:
        """Take no more children from a zygote; close it when the last has ended."""
        self._pass_over(zygote)
        self._retired.add(zygote)
        for child in self._spares.pop(zygote, []):
            self._discard(child)
        self._sweep()

    def _pass_over(self, zygote: ZygoteClient) -> None:
        for zygotes in self._zygotes.values():
            if zygote in zygotes:
                zygotes.remove(zygote)

    def _sweep(self, _ended: object = None) -> None:
        for zygote in list(self._retired):
            if not zygote.children:
                zygote.close()

    def _make_room(self, newest: ZygoteClient) -> None:
        """Close the least recently used idle zygotes until the budget is met."""
        budget_kb = self._rules.memory_mb_max * 1024
        idle = sorted(
            (z for z in self.zygotes if z is not newest and not self._is_busy(z)),
            key=lambda zygote: zygote.last_used,
        )
        while idle and sum(zygote.memory_kb for zygote in self.zygotes) > budget_kb:
            idle.pop(0).close()

    def _is_busy(self, zygote: ZygoteClient) -> bool:
        return zygote.children > len(self._spares.get(zygote, ())) or not zygote.started.done()

    async def _child(self, zygote: ZygoteClient) -> Child:
        if self.layers.level != LANDLOCK:
            return self._spare(zygote) or await self._spawn(zygote)
        async with self._spawning.setdefault(zygote, asyncio.Lock()):
            return self._spare(zygote) or await self._spawn(zygote)

    def _ended(self, zygote: ZygoteClient) -> None:
        if zygote in self._orders:
            self._orders[zygote] -= 1

    async def _spawn(self, zygote: ZygoteClient) -> Child:
        """Fork a child; the first thing that it does is to join its cgroups."""
        share = [] if self._share is None else [self._share.entrance]
        if self._groups is None:
            return await zygote.spawn(share)
        group = self._groups.take()
        try:
            with group.opened() as entrance:
                child = await zygote.spawn([entrance, *share])
        except BaseException:
            self._groups.give_back(group)  # the child that was about to join was killed
            raise
        child.group = group
        return child

    def _discard(self, child: Child) -> None:
        """Kill a child, and release what belongs to it."""
        child.signal(signal.SIGKILL)
        if child.group is not None:
            child.group.kill()
        self._let_go(child)
        child.ended.add_done_callback(self._sweep)

    def _let_go(self, child: Child) -> None:
        child.close()
        group, child.group = child.group, None
        if self._groups is not None and group is not None:
            give_back = self._groups.give_back
            child.ended.add_done_callback(lambda ended: give_back(group))

    # --- spares ---------------------------------------------------------------------------------

    def _spare(self, zygote: ZygoteClient) -> Child | None:
        spares = self._spares.get(zygote, [])
        while spares:
            child = spares.pop()
            if not child.ended.done():
                return child
            self._let_go(child)
        return None

    def _refill(self, zygote: ZygoteClient) -> None:
        """Make the next spare while a job runs; at level `landlock` a zygote has one child."""
        if self.layers.level != LANDLOCK and not zygote.is_cold:
            self._fill_later(zygote, REFILL_SECONDS)

    def _fill_later(self, zygote: ZygoteClient, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._fill_soon, zygote)

    def _fill_soon(self, zygote: ZygoteClient) -> None:
        task = asyncio.create_task(self._fill(zygote))
        self._filling.add(task)
        task.add_done_callback(self._filling.discard)

    def finished(self, child: Child) -> None:
        """Release a child that has run its job, and make the next spare."""
        self._discard(child)
        zygote: ZygoteClient = child.zygote
        self._ended(zygote)
        if not zygote.is_cold and zygote.is_alive:
            self._fill_later(zygote, REFILL_AFTER_SECONDS)

    async def _fill(self, zygote: ZygoteClient) -> None:
        """Make a spare child, unless there are enough."""
        async with self._spawning.setdefault(zygote, asyncio.Lock()):
            if not self._may_have_spares(zygote) or not self._has_room(zygote):
                return
            if len(self._spares.setdefault(zygote, [])) >= self._rules.spares:
                return
            with contextlib.suppress(ZygoteGone, SetupFailed, OSError):
                child = await self._spawn(zygote)
                if self._may_have_spares(zygote):
                    self._spares.setdefault(zygote, []).append(child)
                else:
                    self._discard(child)

    def _may_have_spares(self, zygote: ZygoteClient) -> bool:
        return not self._closed and zygote.is_alive and zygote not in self._retired

    async def close(self) -> None:
        """Kill all zygotes and children; calling it again does nothing."""
        self._closed = True
        for task in list(self._filling):
            task.cancel()
        await asyncio.gather(*self._filling, return_exceptions=True)
        zygotes = self.zygotes
        for zygote in zygotes:
            zygote.close()
        await asyncio.gather(*(zygote.buried for zygote in zygotes if zygote.buried is not None))
        if self._groups is not None:
            await asyncio.to_thread(self._groups.close)
        share, self._share = self._share, None
        if share is not None:
            await asyncio.to_thread(share.close)
