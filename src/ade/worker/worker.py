"""The loop that claims jobs and sees them through.

The model. One worker has a number of slots, one name, and one list of attempts. Four things go on
at once: `claim` fills free slots whenever there is news of work, and looks anyway every
`poll_seconds`; `renew` keeps all leases with one statement every few seconds, and at once when
there is news of a stop request; `guard` gives up attempts whose lease can no longer be trusted; and
each attempt lives in a task of its own.

Draining. `drain` stops the claiming. Attempts have the grace period to end by themselves; then
their children are killed and the jobs handed back, without costing them a retry.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from ade.domain.errors import AdeError
from ade.events.event_file import EventFileExporter
from ade.events.notifier import Subscription
from ade.kernel import Kernel
from ade.kinds import Kinds, Workroom
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.rules import LOCAL, stop_topic, work_topic
from ade.store.rows import Claim
from ade.telemetry import metrics
from ade.worker.attempt import Attempt
from ade.worker.runner import Runner
from ade.worker.workroom import NoLibrary

TROUBLE_SECONDS = 1.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """Hold the numbers that a worker goes by."""

    slots: int = 2
    poll_seconds: float = 1.0
    drain_grace_seconds: float = 30.0
    network_allowed: bool = False


class Worker:
    """Claim jobs and see them through, up to a number at once."""

    def __init__(
        self,
        name: str,
        *,
        kernel: Kernel,
        kinds: Kinds,
        runner: Runner,
        jobs_dir: Path,
        rules: WorkerRules,
        workroom: Workroom | None = None,
    ) -> None:
        self.name = name
        self._kernel = kernel
        self._kinds = kinds
        self._runner = runner
        self._jobs_dir = jobs_dir
        self._rules = rules
        self._workroom = workroom or NoLibrary()
        self._exporter = EventFileExporter(kernel.store, jobs_dir)
        self._ask = ClaimRequest(name, 0, LOCAL)
        self._attempts: dict[Attempt, asyncio.Task[None]] = {}
        self._draining = asyncio.Event()
        self._slot_freed = asyncio.Event()

    @property
    def running(self) -> int:
        """Count the attempts under way."""
        return len(self._attempts)

    @property
    def slots(self) -> int:
        """Count the places for attempts."""
        return self._rules.slots

    def begin_to_drain(self) -> None:
        """Stop claiming; `run` returns when the attempts have ended or were handed back."""
        self._draining.set()

    def drain(self) -> None:
        """Begin to drain; asked a second time, hand back at once what is still running."""
        if self._draining.is_set():
            for attempt in list(self._attempts):
                attempt.hand_back()
        self.begin_to_drain()

    async def run(self) -> None:
        """Work until drained."""
        notifier = self._kernel.notifier
        with (
            notifier.subscribe(work_topic(LOCAL)) as work,
            notifier.subscribe(stop_topic(self.name)) as stops,
        ):
            claiming = asyncio.create_task(self._claim_until_drained(work))
            keeping = [
                asyncio.create_task(self._renew_for_ever(stops)),
                asyncio.create_task(self._guard_for_ever()),
            ]
            await self._draining.wait()
            claiming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await claiming
            await self._let_end()
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)

    # --- claim ----------------------------------------------------------------------------------

    async def _claim_until_drained(self, work: Subscription) -> None:
        while not self._draining.is_set():
            free = self._rules.slots - len(self._attempts)
            if free <= 0:
                self._slot_freed.clear()
                await self._slot_freed.wait()
                continue
            claimed = await self._claim(free)
            if len(claimed) < free:
                await self._news(work)

    async def _news(self, work: Subscription) -> None:
        """Wait for word of work, but not for ever: word may be lost."""
        await work.wait(self._rules.poll_seconds)

    async def _claim(self, free: int) -> list[Claim]:
        """Claim, counting the trust from before the question was asked."""
        asked = self._kernel.store.clock.monotonic()
        self._ask.limit = free
        asking = asyncio.ensure_future(self._kernel.claim(self._ask))
        try:
            claimed = await asyncio.shield(asking)
        except asyncio.CancelledError:
            await self._hear_out(asking, asked)
            raise
        except Exception as error:
            log.warning("cannot claim", reason=_reason(error))
            await asyncio.sleep(TROUBLE_SECONDS)
            return []
        metrics.claimed(len(claimed))
        if self._trust_left(asked) <= 0:
            await self._put_back(claimed)
            return []
        for claim in claimed:
            self._begin(claim, asked)
        return claimed

    def _trust_left(self, asked: float) -> float:
        return self._kernel.rules.lease.trusted_until(asked) - self._kernel.store.clock.monotonic()

    async def _put_back(self, claimed: list[Claim]) -> None:
        """Hand back what was claimed too long ago to be trusted; nothing of it has run."""
        if claimed:
            log.warning("claim answered too late", jobs=len(claimed))
        back = [self._kernel.finish(Finish(claim, None)) for claim in claimed]
        for error in await asyncio.gather(*back, return_exceptions=True):
            if isinstance(error, Exception):
                log.warning("cannot hand back", reason=_reason(error))

    async def _hear_out(self, asking: "asyncio.Future[list[Claim]]", asked: float) -> None:
        """Take what a last claim brings, or its jobs would wait for their leases to end.

        Past the end of its trust the answer is worth nothing, so nobody waits longer for it.
        """
        await asyncio.wait([asking], timeout=max(self._trust_left(asked), 0))
        if not asking.done():
            asking.cancel()
            log.warning("cannot claim", reason="no answer")
        elif error := asking.exception():
            log.warning("cannot claim", reason=type(error).__name__)
        else:
            for claim in asking.result():
                self._begin(claim, asked)

    def _begin(self, claim: Claim, asked: float) -> None:
        attempt = Attempt(
            claim,
            self._kernel.rules.lease.trusted_until(asked),
            kernel=self._kernel,
            kinds=self._kinds,
            runner=self._runner,
            jobs_dir=self._jobs_dir,
            exporter=self._exporter,
            network_allowed=self._rules.network_allowed,
            workroom=self._workroom,
        )
        task = asyncio.create_task(attempt.see_through(), name=f"attempt {claim.id}")
        self._attempts[attempt] = task
        task.add_done_callback(self._ended(attempt))

    def _ended(self, attempt: Attempt) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            del self._attempts[attempt]
            self._slot_freed.set()
            if not task.cancelled() and (error := task.exception()):
                log.error("attempt broke", job_id=attempt.claim.id, exc_info=error)

        return forget

    # --- renew, guard ---------------------------------------------------------------------------

    async def _renew_for_ever(self, stops: Subscription) -> None:
        while True:
            await stops.wait(self._kernel.rules.lease.renew_seconds)
            await self._renew()

    async def _renew(self) -> None:
        """Keep all leases with one statement, and hear what was asked of their jobs."""
        attempts = list(self._attempts)
        asked = self._kernel.store.clock.monotonic()
        try:
            answers = await self._kernel.renew([attempt.held for attempt in attempts])
        except Exception as error:
            log.warning("cannot renew", reason=_reason(error), attempts=len(attempts))
            return
        trusted_until = self._kernel.rules.lease.trusted_until(asked)
        for attempt, answer in zip(attempts, answers, strict=True):
            if isinstance(answer, AdeError):
                attempt.give_up()
            else:
                attempt.renewed(trusted_until, answer.stop_request)

    async def _guard_for_ever(self) -> None:
        """Give up attempts whose trust is over, however long the renewal hangs."""
        clock, margin = self._kernel.store.clock, self._kernel.rules.lease.margin_seconds
        while True:
            now = clock.monotonic()
            for attempt in list(self._attempts):
                if attempt.trusted_until <= now:
                    attempt.give_up()
            soonest = min((a.trusted_until for a in self._attempts), default=now + margin)
            await asyncio.sleep(min(max(soonest - now, 0.05), margin / 2))

    # --- drain ----------------------------------------------------------------------------------

    async def _let_end(self) -> None:
        """Wait for attempts to end, then hand back those that did not."""
        if self._attempts:
            log.info("draining", attempts=len(self._attempts))
            await asyncio.wait(self._attempts.values(), timeout=self._rules.drain_grace_seconds)
        for attempt in list(self._attempts):
            attempt.hand_back()
        if self._attempts:
            await asyncio.wait(self._attempts.values())


def _reason(error: Exception) -> str:
    return error.detail if isinstance(error, AdeError) else type(error).__name__
