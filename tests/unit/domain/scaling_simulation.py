"""A made-up engine, its pilots and their jobs, second by second, ruled by the policy.

Blocks start some time after they are ordered, their pilots take jobs and leave when they are idle.
A test says when jobs come, when the engine does not answer, and which blocks go wrong.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ade.domain.scaling import (
    YOUNG_SECONDS,
    FailureMemory,
    ScaleRule,
    ScaleSignals,
    UntakenJobs,
    decide,
)

TICK_SECONDS = 5
REGISTER_SECONDS = 3
IDLE_SECONDS = 60


class Fate(Enum):
    """What becomes of a block once it has started."""

    WORKS = "works"
    NEVER_REGISTERS = "never registers"
    DIES_YOUNG = "dies young"


@dataclass
class Job:
    """A job that waits, or runs."""

    arrived_at: int
    seconds: int
    ends_at: int = 0


@dataclass
class SimulatedBlock:
    """A block, from its order to its end."""

    name: str
    starts_at: int
    fate: Fate
    jobs: list[Job] = field(default_factory=list)
    busy_at: int = 0

    @property
    def registers_at(self) -> int:
        """Return when its pilot comes, if it does."""
        return self.starts_at + REGISTER_SECONDS

    def is_live(self, now: int) -> bool:
        """Tell whether its pilot has come."""
        return self.fate is not Fate.NEVER_REGISTERS and now >= self.registers_at


@dataclass
class Simulation:
    """Play a trace, and keep what happened."""

    rule: ScaleRule
    trace: Mapping[int, tuple[int, int]]  # at this second, so many jobs of so many seconds
    delay: Callable[[int], int] = lambda order: 30
    fate: Callable[[int], Fate] = lambda order: Fate.WORKS
    is_away: Callable[[int], bool] = lambda second: False
    is_paused: Callable[[int], bool] = lambda second: False  # no pilot takes a job
    queue: deque[Job] = field(default_factory=deque)
    blocks: list[SimulatedBlock] = field(default_factory=list)
    memory: FailureMemory = field(default_factory=FailureMemory)
    untaken: UntakenJobs = field(default_factory=UntakenJobs)
    waits: list[int] = field(default_factory=list)
    orders: list[tuple[int, int]] = field(default_factory=list)  # second, blocks
    cancelled: int = 0
    peak: int = 0
    _ordered: int = 0
    _gone: list[SimulatedBlock] = field(default_factory=list)  # since the scaler's last look

    def run(self, seconds: int) -> "Simulation":
        """Play so many seconds."""
        for now in range(seconds):
            jobs, length = self.trace.get(now, (0, 0))
            self.queue.extend(Job(now, length) for _ in range(jobs))
            for block in list(self.blocks):
                self._play(block, now)
            if now % TICK_SECONDS == 0 and not self.is_away(now):
                self._tick(now)
            self.peak = max(self.peak, len(self.blocks))
        return self

    @property
    def ordered(self) -> int:
        """Count the blocks that were ordered."""
        return sum(blocks for _, blocks in self.orders)

    @property
    def unfinished(self) -> int:
        """Count the jobs that wait or run."""
        return len(self.queue) + sum(len(block.jobs) for block in self.blocks)

    def waited(self, share: float) -> int:
        """Return the time in which this share of the jobs had started."""
        return sorted(self.waits)[int(len(self.waits) * share)]

    def _play(self, block: SimulatedBlock, now: int) -> None:
        if block.fate is Fate.NEVER_REGISTERS and now > block.starts_at:
            return self._end(block)
        if not block.is_live(now):
            return
        if block.fate is Fate.DIES_YOUNG and now >= block.registers_at + YOUNG_SECONDS / 3:
            return self._end(block)
        block.jobs = [job for job in block.jobs if job.ends_at > now]
        slots = 0 if self.is_paused(now) else self.rule.slots_per_block
        while self.queue and len(block.jobs) < slots:
            job = self.queue.popleft()
            self.waits.append(now - job.arrived_at)
            job.ends_at = now + job.seconds
            block.jobs.append(job)
        if block.jobs or not block.busy_at:
            block.busy_at = now
        if now - block.busy_at >= IDLE_SECONDS:
            self.blocks.remove(block)

    def _end(self, block: SimulatedBlock) -> None:
        self.blocks.remove(block)
        self._gone.append(block)
        self.queue.extendleft(block.jobs)  # their leases end

    def _tick(self, now: int) -> None:
        live = [block for block in self.blocks if block.is_live(now)]
        for block in live:
            has_lived = now - block.registers_at >= YOUNG_SECONDS
            self.memory = self.memory.came(block.registers_at, has_lived=has_lived)
        died = any(block.fate is Fate.DIES_YOUNG for block in self._gone)
        self.memory = self.memory.failed(now, len(self._gone), pilots_died=died)
        self._gone.clear()
        signals = self._signals(live, now)
        self.memory = self.memory.faded(now, self.rule, signals.tried)
        self.untaken = self.untaken.seen(signals, now)
        decision = decide(signals, self.rule, self.memory, now, self.untaken)
        self.cancelled += len(decision.cancel)
        self.blocks = [block for block in self.blocks if block.name not in decision.cancel]
        if decision.launch:
            self.orders.append((now, decision.launch))
        for _ in range(decision.launch):
            order = self._ordered = self._ordered + 1
            starts_at = now + self.delay(order)
            self.blocks.append(SimulatedBlock(f"block-{order}", starts_at, self.fate(order)))

    def _signals(self, live: list[SimulatedBlock], now: int) -> ScaleSignals:
        queued = [block.name for block in reversed(self.blocks) if now < block.starts_at]
        running = sum(len(block.jobs) for block in live)
        free_slots = len(live) * self.rule.slots_per_block - running
        return ScaleSignals(
            waiting=len(self.queue),
            oldest_seconds=now - self.queue[0].arrived_at if self.queue else 0,
            running=running,
            free_slots=free_slots,
            idle_slots=free_slots,
            queued_blocks=tuple(queued),
            starting_blocks=len(self.blocks) - len(queued) - len(live),
            live_blocks=len(live),
            young_blocks=sum(now - block.registers_at < YOUNG_SECONDS for block in live),
        )
