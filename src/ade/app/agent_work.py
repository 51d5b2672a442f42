"""Hand jobs to the agents that ask for them; most of them ask in vain, which costs no query.

The model. The pools in which jobs wait are kept in memory. They are read again when a notification
says that a job for agents waits: the polls that come then wait for that. Otherwise they are read
once a second as long as agents ask, for all together and beside their polls. A poll of an agent
that serves none of the pools is answered at once.

A long poll waits for its turn. When there is work in a pool, those that have waited longest are
woken, a few at a time; one that gets a job wakes others.

    what happens                            what follows
    --------------------------------------  -------------------------------------------------------
    a notification is lost                  the job is found a second later
    another server was faster               a claim finds nothing, and the poll waits on
    the database is away                    there is no work, as far as agents are told
    the client leaves before the claim      no job is taken
    the client leaves during the claim      the job is handed back, and is queued again
    the client leaves during the answer     the claim expires (`ade.domain.staleness`)
    an operator drains the agent            it is told of no work, and the others get it
    a preferred host asks no more           others get its jobs `ASKING_SECONDS` later, and as
                                            much later as servers write down who asked
"""

import asyncio
import contextlib
import math
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import structlog

from ade.app.agent_hosts import AgentHosts
from ade.domain.agent_pool import AgentPool, in_order
from ade.domain.errors import AdeError
from ade.domain.events import work_topic
from ade.domain.job import AGENT_POOL
from ade.domain.units import MICROSECONDS
from ade.domain.vocabulary import AgentStatus
from ade.events.notifier import Subscription
from ade.kernel import Kernel
from ade.stages.agents.dispatch import Dispatch
from ade.stages.agents.report import AgentReport
from ade.stages.claim import Rotation
from ade.stages.queue_pauses import paused_scopes
from ade.store.port import Reading
from ade.store.rows import Claim, JobRef

LOOK_SECONDS = 1.0
# What is so old, because no agent has asked for a while, is not believed.
OLD_SECONDS = 5.0
# A host that has asked for work within this time goes first with the jobs that prefer it.
ASKING_SECONDS = 15.0
WOKEN_AT_ONCE = 4
WOKEN_BY_SUCCESS = 2
ROTATIONS_MAX = 4096
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AskingAgent:
    """Say which agent asks for a job, and whether it names its attempt in its reports."""

    name: str
    labels: frozenset[str] = frozenset()
    fenced: bool = False


@dataclass(slots=True)
class _Waiting:
    agent: AskingAgent
    turn: asyncio.Event = field(default_factory=asyncio.Event)


class _AskingHosts:
    """Tell which hosts ask for work: this server, or `elsewhere` another one."""

    def __init__(self, hosts: AgentHosts) -> None:
        self._hosts = hosts
        self.elsewhere: Collection[str] = ()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self.elsewhere or self._hosts.asked_within(name, ASKING_SECONDS)


class AgentWork:
    """Hand jobs to the agents that ask."""

    def __init__(self, kernel: Kernel, hosts: AgentHosts) -> None:
        self._kernel = kernel
        self._hosts = hosts
        self._pools: Sequence[AgentPool] = ()
        self._drained: Collection[str] = ()
        self._asking = _AskingHosts(hosts)
        self._looked_at: float | None = None
        self._looks = 0
        self._looking = asyncio.Lock()
        self._looking_beside: asyncio.Task[None] | None = None
        self._hints: Subscription | None = None
        self._is_outdated = True
        self._subscriptions = ExitStack()
        self._waiting: dict[int, _Waiting] = {}
        self._watching: asyncio.Task[None] | None = None
        self._rotations: dict[str, Rotation] = {}
        self._is_draining = False

    def drain(self) -> None:
        """Answer all long polls, and hand out nothing more."""
        self._is_draining = True
        for waiting in self._waiting.values():
            waiting.turn.set()

    async def next_job(
        self, agent: AskingAgent, wait_seconds: float, gone: "asyncio.Future[None]"
    ) -> Claim | None:
        """Claim a job, waiting for one up to a time; once `gone` is done, claim none."""
        self._hosts.asked(agent.name, agent.labels)
        until = self._kernel.monotonic() + wait_seconds
        await self._look_if_outdated()
        found = await self._try(agent, gone)
        if found is not None or wait_seconds <= 0:
            return found
        waiting = _Waiting(agent)
        self._waiting[id(waiting)] = waiting
        self._watch()
        try:
            while found is None and not gone.done() and not self._is_draining:
                left_seconds = until - self._kernel.monotonic()
                if left_seconds <= 0:
                    break
                await _first(waiting.turn, gone, left_seconds)
                waiting.turn.clear()
                self._hosts.asked(agent.name, agent.labels)
                found = await self._try(agent, gone)
        finally:
            del self._waiting[id(waiting)]
        return found

    def why_none(self, agent: AskingAgent) -> str:
        """Say in a word why an agent got no job."""
        if self._kernel.settings.safe_mode:
            return "safe_mode"
        if self._is_draining:
            return "draining"
        return "drained" if agent.name in self._drained else "idle"

    async def give_back(self, agent: str, claim: Claim) -> None:
        """Queue a job again that could not be delivered; if that fails, its claim expires."""
        ref = JobRef(claim.workspace_id, claim.id)
        report = AgentReport(ref, agent, AgentStatus.QUEUED, attempt=claim.fence)
        with contextlib.suppress(AdeError):
            await self._kernel.report_status(report)

    async def _try(self, agent: AskingAgent, gone: "asyncio.Future[None]") -> Claim | None:
        """Claim a job if there may be one for the agent, and its client is still there."""
        pools = self._pools_of(agent)
        if not pools or gone.done() or self._is_draining or self._kernel.settings.safe_mode:
            return None
        looks = self._looks
        request = Dispatch(agent.name, pools, agent.fenced, self._rotation(agent.name))
        claiming = asyncio.ensure_future(self._kernel.dispatch(request))
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with contextlib.suppress(AdeError):
                if (claim := await claiming) is not None:
                    await self.give_back(agent.name, claim)
            raise
        if claim is None:
            if looks == self._looks:  # else what is in memory is newer than the claim
                self._pools = [pool for pool in self._pools if pool not in pools]
            return None
        if gone.done():
            await self.give_back(agent.name, claim)
            return None
        self._wake(pools, WOKEN_BY_SUCCESS)
        return claim

    def _pools_of(self, agent: AskingAgent) -> list[AgentPool]:
        """List the pools with work that an agent may take, in the order in which it does."""
        if agent.name in self._drained:  # or its vain claims would hide the work from others
            return []
        return in_order([pool for pool in self._pools if self._serves(agent, pool)], agent.name)

    def _serves(self, agent: AskingAgent, pool: AgentPool) -> bool:
        return pool.serves(agent.name, agent.labels, self._asking)

    def _rotation(self, name: str) -> Rotation:
        rotation = self._rotations.pop(name, None) or Rotation()
        while len(self._rotations) >= ROTATIONS_MAX:
            del self._rotations[next(iter(self._rotations))]
        self._rotations[name] = rotation
        return rotation

    # --- what is known of the work that waits -----------------------------------------------------

    def _age_seconds(self) -> float:
        """Return how old what is known is; it is unknown if something has changed since."""
        if self._hints is None or self._looked_at is None or self._is_outdated:
            return math.inf
        if self._hints.is_notified:
            return math.inf
        return self._kernel.monotonic() - self._looked_at

    async def _look_if_outdated(self) -> None:
        """Read in which pools jobs wait, if that has changed; have it read beside if it is old."""
        age_seconds = self._age_seconds()
        if age_seconds >= OLD_SECONDS:
            await self._look_if_older(OLD_SECONDS)
        elif age_seconds >= LOOK_SECONDS and not self._looking.locked():
            self._looking_beside = asyncio.create_task(self._look_beside(), name="agent work")

    async def _look_beside(self) -> None:
        try:
            await self._look_if_older(LOOK_SECONDS)
        except Exception as error:
            log.warning("cannot look for the jobs of agents", reason=type(error).__name__)

    async def _look_if_older(self, seconds: float) -> None:
        """Read in which pools jobs wait, unless that was just read; one read serves all."""
        async with self._looking:
            if self._age_seconds() < seconds:
                return
            if self._hints is None:
                subscribing = self._kernel.subscribe(work_topic(AGENT_POOL))
                self._hints = self._subscriptions.enter_context(subscribing)
            if self._hints.is_notified:
                await self._hints.wait(0)  # it ends at once
            self._is_outdated = False
            try:
                look = await self._kernel.read(self._look)
                self._pools, self._asking.elsewhere, self._drained = look
            except AdeError:
                self._pools = ()  # and it is tried again when what is known is old
                raise
            finally:
                self._looks += 1
                self._looked_at = self._kernel.monotonic()

    def _look(self, reading: Reading) -> tuple[list[AgentPool], Collection[str], Collection[str]]:
        pools = reading.agent_jobs.waiting_pools()
        drained = {scope.worker for scope in paused_scopes(reading) if scope.worker is not None}
        preferred = {pool.host for pool in pools if pool.host and not pool.require_host}
        if not preferred:
            return pools, (), drained
        window_seconds = ASKING_SECONDS + self._kernel.settings.staleness.note_seconds
        since = self._kernel.store.clock.now_us() - int(window_seconds * MICROSECONDS)
        asking = {
            host.name
            for host in reading.agent_jobs.hosts()
            if host.name in preferred and (host.asked_at or 0) >= since
        }
        return pools, asking, drained

    # --- long polls -------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Have the long polls woken when there is work, as long as there are any."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._wake_for_ever(), name="agent work")

    async def _wake_for_ever(self) -> None:
        while self._waiting:
            await self._look_beside()
            self._wake(self._pools, WOKEN_AT_ONCE)
            if self._hints is None:
                await asyncio.sleep(LOOK_SECONDS)
            elif await self._hints.wait(LOOK_SECONDS):
                self._is_outdated = True

    def _wake(self, pools: Sequence[AgentPool], count: int) -> None:
        """Wake some of the agents that may take jobs of these pools, those of each pool."""
        for pool in pools:
            left = count
            for waiting in self._waiting.values():
                if not waiting.turn.is_set() and self._serves(waiting.agent, pool):
                    waiting.turn.set()
                    left -= 1
                    if not left:
                        break


async def _first(turn: asyncio.Event, gone: "asyncio.Future[None]", seconds: float) -> None:
    """Wait until one of the two happens, up to a time."""
    waiting = asyncio.ensure_future(turn.wait())
    waits: set[asyncio.Future[Any]] = {waiting, gone}
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
