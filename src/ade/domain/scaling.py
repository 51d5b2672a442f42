"""Decide how many blocks of pilots to keep on an engine.

The model. A *block* is one order to an engine (a batch job, a process); it starts one *pilot*, a
worker that leaves when it is idle. The policy looks at what waits and at the blocks that exist,
and answers with how many blocks to launch and which queued ones to cancel. It never ends a block
that runs: pilots leave by themselves.

The count follows the backlog: enough blocks for the jobs that no free slot will take, less the
blocks that are on their way, so that none is ordered twice.

    what is seen                               what is decided
    -----------------------------------------  -------------------------------------------------
    jobs wait and no pilot is live             order for the whole backlog at once
    jobs wait and pilots are live              order when the oldest job has waited `hold_seconds`
    nothing waits                              cancel blocks that the engine has not started
    a block ended before its pilot registered  order nothing for 30, 60, 120 ... 600 s, then one
    the first pilot registers after that       order for the backlog again
    a pilot died within 30 s                   the same, until one lives longer or says goodbye
    nothing is needed for as long again        the failures are forgotten
    jobs wait, and slots of pilots stay free   order one block after 30, 60, 120 ... 600 s: pilots
                                               cannot take these jobs (they are paused, say)
    fewer blocks than `min_blocks`             order the difference, whatever waits
    `max_blocks` exist                         order nothing, and say so
"""

import math
from dataclasses import dataclass, replace

# A pilot drains this long before its grace begins: engines enforce wall times by the minute.
DRAIN_MARGIN_SECONDS = 60.0
FAILURES_SHOWN_MIN = 5
# A pilot that registered and is gone sooner than this, without a goodbye, has failed.
YOUNG_SECONDS = 30.0
# Pilots whose slots are free for so long while jobs wait cannot take those jobs.
UNTAKEN_SECONDS = 20.0
BLAME = "Blocks ended before their pilots registered"
BLAME_DIED = f"Pilots died within {YOUNG_SECONDS:.0f} s"


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """Hold the settings of the policy."""

    slots_per_block: int = 1
    min_blocks: int = 0
    max_blocks: int = 10
    hold_seconds: float = 10.0
    backoff_seconds: float = 30.0
    backoff_seconds_max: float = 600.0

    def __post_init__(self) -> None:
        if not (0 <= self.min_blocks <= self.max_blocks and self.slots_per_block > 0):
            raise ValueError("0 <= min_blocks <= max_blocks, and a block has at least one slot")

    def backoff(self, failures: int) -> float:
        """Return how long to wait after so many blocks in a row have failed."""
        doubled = self.backoff_seconds * 2.0 ** min(max(failures - 1, 0), 30)
        return min(doubled, self.backoff_seconds_max) if failures > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ScaleSignals:
    """Hold what the policy looks at, at one moment.

    `waiting` are jobs that pilots may take now; `free_slots` those of the workers that are live.
    `queued_blocks` has not been started by the engine, newest first; `starting_blocks` were, and
    their pilots have not registered; `live_blocks` have a registered pilot, and those of
    `young_blocks` among them registered less than `YOUNG_SECONDS` ago. `idle_slots` are the free
    slots of their pilots.
    """

    waiting: int = 0
    oldest_seconds: float = 0.0
    running: int = 0
    free_slots: int = 0
    queued_blocks: tuple[str, ...] = ()
    starting_blocks: int = 0
    live_blocks: int = 0
    young_blocks: int = 0
    idle_slots: int = 0

    @property
    def coming(self) -> int:
        """Count the blocks that will bring slots, but have not yet."""
        return len(self.queued_blocks) + self.starting_blocks

    @property
    def tried(self) -> int:
        """Count the blocks that may still end before they are of use."""
        return self.coming + self.young_blocks

    @property
    def blocks(self) -> int:
        """Count the blocks that exist."""
        return self.coming + self.live_blocks


@dataclass(frozen=True, slots=True)
class FailureMemory:
    """Remember how many blocks in a row failed, and when the last one did.

    After a pilot that died young, one that has merely registered proves nothing.
    """

    failures: int = 0
    failed_at_seconds: float = 0.0
    pilots_died: bool = False

    def failed(
        self, now_seconds: float, blocks: int = 1, *, pilots_died: bool = False
    ) -> "FailureMemory":
        """Remember a round of blocks that failed; those of one round count once."""
        if not blocks:
            return self
        died = self.pilots_died or pilots_died
        return FailureMemory(self.failures + 1, now_seconds, died)

    def came(self, at_seconds: float, *, has_lived: bool) -> "FailureMemory":
        """Forget the failures if a pilot came after them; where others died, it must have lived."""
        is_proof = at_seconds > self.failed_at_seconds and (has_lived or not self.pilots_died)
        return FailureMemory() if is_proof else self

    def faded(self, now_seconds: float, rule: ScaleRule, tried: int) -> "FailureMemory":
        """Forget the failures if nothing was tried for as long again as their back-off was.

        `tried` counts the blocks that may still fail.
        """
        quiet_seconds = now_seconds - self.failed_at_seconds
        is_over = not tried and quiet_seconds >= 2 * rule.backoff(self.failures)
        return FailureMemory() if is_over else self


@dataclass(frozen=True, slots=True)
class UntakenJobs:
    """Remember how many times in a row pilots left jobs waiting although slots of theirs were free.

    What waits and what a pilot may take can differ: an operator paused it, another scaler's pilots
    run it, a kind is not installed on the nodes. Without this, blocks would come and go for ever.
    """

    times: int = 0
    noted_at_seconds: float = 0.0
    since_seconds: float | None = None  # slots are free while jobs wait
    is_noted: bool = False  # since then

    def seen(self, signals: ScaleSignals, now_seconds: float) -> "UntakenJobs":
        """Look at what waits and what is free; jobs that were taken end the matter."""
        if not signals.waiting or (signals.live_blocks and not signals.idle_slots):
            return UntakenJobs()
        if not signals.idle_slots:
            return replace(self, since_seconds=None, is_noted=False)
        since = now_seconds if self.since_seconds is None else self.since_seconds
        if self.is_noted or now_seconds - since < UNTAKEN_SECONDS:
            return replace(self, since_seconds=since)
        return UntakenJobs(self.times + 1, now_seconds, since, is_noted=True)


NO_UNTAKEN_JOBS = UntakenJobs()


@dataclass(frozen=True, slots=True)
class ScaleDecision:
    """Hold what to do now, and why, in one sentence."""

    launch: int = 0
    cancel: tuple[str, ...] = ()
    reason: str = ""


def decide(
    signals: ScaleSignals,
    rule: ScaleRule,
    memory: FailureMemory,
    now_seconds: float,
    untaken: UntakenJobs = NO_UNTAKEN_JOBS,
) -> ScaleDecision:
    """Decide how many blocks to launch and which queued ones to cancel."""
    surplus = _surplus(signals, rule)
    if surplus:
        return ScaleDecision(0, surplus, f"Nothing waits: {_count(len(surplus))} not needed.")
    short = max(signals.waiting - signals.free_slots, 0)
    for_backlog = max(math.ceil(short / rule.slots_per_block) - signals.coming, 0)
    for_minimum = max(rule.min_blocks - signals.blocks, 0)
    held = signals.live_blocks > 0 and signals.oldest_seconds < rule.hold_seconds
    wanted = max(0 if held else for_backlog, for_minimum)
    if not wanted:
        return ScaleDecision(reason=_why_none(signals, short, held=held and for_backlog > 0))
    room = max(rule.max_blocks - signals.blocks, 0)
    if not room:
        return ScaleDecision(reason=f"{_jobs(short)}, and all {rule.max_blocks} blocks exist.")
    if memory.failures:
        return _probe(signals, rule, memory, now_seconds)
    if untaken.times and for_backlog > for_minimum:
        return _try_untaken(signals, rule, untaken, now_seconds, for_minimum)
    launch = min(wanted, room)
    cause = _jobs(short) if for_backlog >= for_minimum else f"At least {rule.min_blocks} must exist"
    capped = f"; {_count(wanted)} wanted, at most {rule.max_blocks}" if launch < wanted else ""
    return ScaleDecision(launch, (), f"{cause}: {_count(launch)} ordered{capped}.")


def _surplus(signals: ScaleSignals, rule: ScaleRule) -> tuple[str, ...]:
    """Choose the queued blocks to cancel when nothing waits, the newest first."""
    if signals.waiting:
        return ()
    kept = max(rule.min_blocks - signals.starting_blocks - signals.live_blocks, 0)
    return signals.queued_blocks[: max(len(signals.queued_blocks) - kept, 0)]


def _probe(
    signals: ScaleSignals, rule: ScaleRule, memory: FailureMemory, now_seconds: float
) -> ScaleDecision:
    """Order a single block once the back-off is over."""
    failed = f"{memory.failures} time{'s' if memory.failures > 1 else ''} in a row"
    cause = f"{BLAME_DIED if memory.pilots_died else BLAME}, {failed}"
    left = memory.failed_at_seconds + rule.backoff(memory.failures) - now_seconds
    if left > 0:
        return ScaleDecision(reason=f"{cause}: the next one is ordered in {left:.0f} s.")
    if signals.coming:
        return ScaleDecision(reason=f"{cause}: one block is tried, and no pilot has registered.")
    if memory.pilots_died and signals.young_blocks:
        return ScaleDecision(
            reason=f"{cause}: one block is tried; its pilot must live for {YOUNG_SECONDS:.0f} s."
        )
    return ScaleDecision(1, (), f"{cause}: one block is ordered to try again.")


def _try_untaken(
    signals: ScaleSignals,
    rule: ScaleRule,
    untaken: UntakenJobs,
    now_seconds: float,
    for_minimum: int,
) -> ScaleDecision:
    """Order a single block once the back-off is over, for jobs that pilots did not take."""
    times = f"{untaken.times} time{'s' if untaken.times > 1 else ''} in a row"
    cause = f"Pilots with free slots left {_number(signals.waiting)} waiting, {times}"
    left = untaken.noted_at_seconds + rule.backoff(untaken.times) - now_seconds
    if for_minimum:
        return ScaleDecision(for_minimum, (), f"At least {rule.min_blocks} blocks must exist.")
    if left > 0:
        return ScaleDecision(reason=f"{cause}: the next block is ordered in {left:.0f} s.")
    if signals.coming or signals.idle_slots:
        return ScaleDecision(reason=f"{cause}: one block is tried.")
    return ScaleDecision(1, (), f"{cause}: one block is ordered to try again.")


def _why_none(signals: ScaleSignals, short: int, *, held: bool) -> str:
    if held:
        return f"{_jobs(short)}, the oldest for {signals.oldest_seconds:.0f} s: not long enough."
    if short and signals.coming:
        return f"{_jobs(short)}, and {_count(signals.coming)} on the way."
    if signals.waiting:
        return f"Free slots of running workers take the {signals.waiting} waiting."
    return "Nothing waits."


def _jobs(count: int) -> str:
    return f"{count} job{'s wait' if count != 1 else ' waits'} without a free slot"


def _number(jobs: int) -> str:
    return f"{jobs} job{'s' if jobs != 1 else ''}"


def _count(blocks: int) -> str:
    return f"{blocks} block{' is' if blocks == 1 else 's are'}"


def idle_exit_seconds(configured_seconds: float, queue_seconds: tuple[float, ...]) -> float:
    """Return after how long an idle pilot leaves: never sooner than a new one usually comes.

    `queue_seconds` are the times that the last blocks took from their order to their pilot.
    """
    if not queue_seconds:
        return configured_seconds
    median = sorted(queue_seconds)[len(queue_seconds) // 2]
    return max(configured_seconds, median)


def drain_after_seconds(walltime_seconds: float, grace_seconds: float) -> float:
    """Return how long a pilot works before it drains, so that it ends before its wall time."""
    return max(walltime_seconds - grace_seconds - DRAIN_MARGIN_SECONDS, 0.0)
