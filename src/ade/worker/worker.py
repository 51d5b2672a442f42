"""The loop that claims jobs and takes them to their ends.

The model. One worker has a number of slots, one name, and one list of attempts. Five things go on
at once: `claim` fills free slots whenever there is news of work, and looks anyway every
`poll_seconds`; `renew` keeps all leases with one statement every few seconds, and at once when
there is news of a stop request; `guard` gives up attempts whose lease can no longer be trusted;
`note` tells the database which kinds this worker runs; and each attempt lives in its own task.

A worker whose slots are all taken claims when attempts end, and records their ends in the same
transaction (`ade.worker.pending_ends`). Their slots are free from then on, although each attempt
still copies the events of its job to a file: a worker has up to twice as many attempts as slots.

Draining. `drain` stops the claiming. Attempts have the grace period to end by themselves; then
their children are killed and the jobs handed back, without costing them a retry. A pilot, a worker
that an engine started for a limited time, begins to drain by itself: when it was idle for long, and
before its time ends. It takes no job whose timeout is longer than what is left until then.
"""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from ade.domain.errors import AdeError
from ade.domain.events import stop_topic, work_topic
from ade.domain.job import LOCAL_POOL
from ade.domain.network import NetworkRule
from ade.kinds import JobIO, Kinds
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.finish_and_claim import FinishedAndClaimed
from ade.stages.workers import NOTE_SECONDS, RunningWorker
from ade.store.rows import Claim, LeaseRef
from ade.telemetry import metrics
from ade.worker.attempt import Attempt
from ade.worker.job_folders import take_away
from ade.worker.job_io import NoJobIO
from ade.worker.pending_ends import PendingEnd, PendingEnds, answer_all
from ade.worker.runner import Runner
from ade.worker.worker_kernel import Hints, WorkerKernel

TROUBLE_SECONDS = 1.0
# How long a worker that ends tries to hand back what still ran; then the leases end by themselves.
HAND_BACK_SECONDS = 4.0
CANCEL_SECONDS = 1.0
ATTEMPTS_PER_SLOT_MAX = 2
LEAVE_CHECK_SECONDS = 0.5
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """Hold the settings of a worker."""

    slots: int = 2
    poll_seconds: float = 1.0
    drain_grace_seconds: float = 30.0
    network: NetworkRule = NetworkRule.NEVER
    # Whether the folders of jobs stay, for people to look at.
    keeps_folders: bool = True
    # For a pilot: drain when idle for so long, and in any case after so long.
    idle_seconds_max: float | None = None
    drain_after_seconds: float | None = None
    block: str | None = None


class Worker:
    """Claim jobs and take them to their ends, a limited number at once."""

    def __init__(
        self,
        name: str,
        *,
        kernel: WorkerKernel,
        kinds: Kinds,
        runner: Runner,
        build_runner: Runner | None = None,
        jobs_dir: Path,
        rules: WorkerRules,
        job_io_of: Callable[[LeaseRef], JobIO] | None = None,
    ) -> None:
        self.name = name
        self._kernel = kernel
        self._kinds = kinds
        self._runner = runner
        self._build_runner = build_runner or runner
        self._jobs_dir = jobs_dir
        self._rules = rules
        self._job_io_of = job_io_of or (lambda lease: NoJobIO())
        self._exporter = kernel.event_exporter(jobs_dir)
        self._note = RunningWorker(
            name,
            socket.gethostname()[:100],
            frozenset(kinds.names()),
            rules.slots,
            block=rules.block,
        )
        self._drains_at: float | None = None  # on the monotonic clock
        self._request = ClaimRequest(name, 0, LOCAL_POOL, kinds=self._note.kinds)
        self._attempts: dict[Attempt, asyncio.Task[None]] = {}
        self._occupied = set[LeaseRef]()
        self._draining = asyncio.Event()
        self._slot_freed = asyncio.Event()
        self._ends = PendingEnds(kernel, self._slot_freed)

    @property
    def running(self) -> int:
        """Count the attempts whose end is not recorded yet."""
        return len(self._occupied)

    @property
    def slots(self) -> int:
        """Count the places for attempts."""
        return self._rules.slots

    def begin_to_drain(self) -> None:
        """Stop claiming; `run` returns when the attempts have ended or were handed back."""
        self._draining.set()

    async def until_draining(self) -> None:
        """Wait until this worker begins to drain."""
        await self._draining.wait()

    def drain(self) -> None:
        """Begin to drain; called a second time, hand back at once what is still running."""
        if self._draining.is_set():
            for attempt in list(self._attempts):
                attempt.hand_back()
        self.begin_to_drain()

    async def run(self) -> None:
        """Work until drained."""
        self._set_time_to_drain()
        with (
            self._kernel.subscribe(work_topic(LOCAL_POOL)) as work,
            self._kernel.subscribe(stop_topic(self.name)) as stops,
        ):
            claiming = asyncio.create_task(self._claim_until_drained(work))
            keeping = [
                asyncio.create_task(self._renew_for_ever(stops)),
                asyncio.create_task(self._guard_for_ever()),
                asyncio.create_task(self._note_for_ever()),
                asyncio.create_task(self._leave_in_time()),
            ]
            await self._draining.wait()
            claiming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await claiming
            if self._attempts:  # whoever counts free slots does not count these any more
                self._note = replace(self._note, slots=0)
                with contextlib.suppress(Exception):
                    await self._kernel.note_worker(self._current_note())
            await self._let_end()
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            with contextlib.suppress(Exception):  # a sweep deletes the note if this cannot
                await self._kernel.forget_worker(self.name)

    # --- claim ----------------------------------------------------------------------------------

    async def _claim_until_drained(self, work: Hints) -> None:
        try:
            while not self._draining.is_set():
                self._ends.hold()
                free = self._free_slots()
                if free <= 0:
                    self._slot_freed.clear()
                    await self._slot_freed.wait()
                    continue
                claims = await self._finish_and_claim(free)
                if len(claims) < free and not self._request.rotation.has_more_to_set_aside:
                    self._ends.release()
                    # For a limited time: the news of a job may be lost.
                    await work.wait(self._rules.poll_seconds)
        finally:
            self._ends.release()

    def _free_slots(self) -> int:
        """Count the slots to fill, among them those of attempts whose ends wait to be recorded."""
        free = self._rules.slots - len(self._occupied) + len(self._ends)
        return min(free, ATTEMPTS_PER_SLOT_MAX * self._rules.slots - len(self._attempts))

    async def _finish_and_claim(self, limit: int) -> list[Claim]:
        """Claim, and record with it the ends that wait; trust counts from before the request."""
        requested_at = self._kernel.monotonic()
        ends = self._ends.take()
        call = asyncio.ensure_future(self._call(ends, limit))
        call.add_done_callback(partial(answer_all, ends))
        try:
            claims = (await asyncio.shield(call)).claims
        except asyncio.CancelledError:
            self._ends.release()
            await self._take_last_claims(call, requested_at, cancel=not ends)
            raise
        except Exception as error:
            log.warning("cannot claim", reason=_reason(error), ends=len(ends))
            self._ends.release()
            await asyncio.sleep(TROUBLE_SECONDS)
            return []
        self._occupied.difference_update(pending.end.lease for pending in ends)
        metrics.claimed(len(claims))
        if self._trust_left(requested_at) <= 0:
            await self._put_back(claims)
            return []
        for claim in claims:
            self._begin(claim, requested_at)
        return claims

    async def _call(self, ends: list[PendingEnd], limit: int) -> FinishedAndClaimed:
        self._request.limit = limit
        if self._drains_at is not None:
            left_seconds = self._drains_at - self._kernel.monotonic()
            self._request.timeout_ms_max = max(int(left_seconds * 1000), 0)
        if not ends:
            return FinishedAndClaimed([], await self._kernel.claim(self._request))
        return await self._kernel.finish_and_claim([one.end for one in ends], self._request)

    def _trust_left(self, requested_at: float) -> float:
        trusted_until = self._kernel.lease.trusted_until(requested_at)
        return trusted_until - self._kernel.monotonic()

    async def _put_back(self, claims: list[Claim]) -> None:
        """Hand back what was claimed too long ago to be trusted; nothing of it has run."""
        if claims:
            log.warning("claim answered too late", jobs=len(claims))
        back = [self._kernel.finish(Finish(claim, None)) for claim in claims]
        for error in await asyncio.gather(*back, return_exceptions=True):
            if isinstance(error, Exception):
                log.warning("cannot hand back", reason=_reason(error))

    async def _take_last_claims(
        self, call: "asyncio.Task[FinishedAndClaimed]", requested_at: float, *, cancel: bool
    ) -> None:
        """Begin what a last claim brings, or its jobs would wait for their leases to end.

        Claims are worthless past the end of their trust. Attempts still wait for ends that are on
        their way, so a call that records some is not cancelled.
        """
        await asyncio.wait([call], timeout=max(self._trust_left(requested_at), 0))
        if not call.done():
            if cancel:
                call.cancel()
            log.warning("cannot claim", reason="no answer")
        elif error := call.exception():
            log.warning("cannot claim", reason=type(error).__name__)
        else:
            for claim in call.result().claims:
                self._begin(claim, requested_at)

    def _begin(self, claim: Claim, requested_at: float) -> None:
        attempt = Attempt(
            claim,
            self._kernel.lease.trusted_until(requested_at),
            kernel=self._kernel,
            record=self._ends.record,
            kinds=self._kinds,
            runner=self._runner,
            build_runner=self._build_runner,
            jobs_dir=self._jobs_dir,
            exporter=self._exporter,
            network=self._rules.network,
            job_io=self._job_io_of(LeaseRef(claim.workspace_id, claim.id, claim.fence)),
        )
        task = asyncio.create_task(attempt.see_through(), name=f"attempt {claim.id}")
        self._attempts[attempt] = task
        self._occupied.add(attempt.held)
        task.add_done_callback(self._ended(attempt))

    def _ended(self, attempt: Attempt) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            del self._attempts[attempt]
            self._occupied.discard(attempt.held)
            self._slot_freed.set()
            if not self._rules.keeps_folders:
                self._remove_folder(attempt.claim.id)
            if not task.cancelled() and (error := task.exception()):
                log.error("attempt broke", job_id=attempt.claim.id, exc_info=error)

        return forget

    def _remove_folder(self, job_id: str) -> None:
        if any(other.claim.id == job_id for other in self._attempts):
            return
        gone = take_away(self._jobs_dir / job_id)
        if gone is not None:
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, partial(shutil.rmtree, gone, ignore_errors=True))

    # --- renew, guard ---------------------------------------------------------------------------

    async def _renew_for_ever(self, stops: Hints) -> None:
        while True:
            await stops.wait(self._kernel.lease.renew_seconds)
            await self._renew()

    async def _renew(self) -> None:
        """Renew all leases with one statement, and pass on stop requests."""
        attempts = [attempt for attempt in self._attempts if attempt.held in self._occupied]
        sent_at = self._kernel.monotonic()
        try:
            answers = await self._kernel.renew([attempt.held for attempt in attempts])
        except Exception as error:
            log.warning("cannot renew", reason=_reason(error), attempts=len(attempts))
            return
        trusted_until = self._kernel.lease.trusted_until(sent_at)
        for attempt, answer in zip(attempts, answers, strict=True):
            if isinstance(answer, AdeError):
                attempt.give_up()
            else:
                attempt.renewed(trusted_until, answer.stop_request)

    async def _guard_for_ever(self) -> None:
        """Give up attempts whose trust is over, however long the renewal hangs."""
        margin = self._kernel.lease.margin_seconds
        while True:
            now = self._kernel.monotonic()
            for attempt in list(self._attempts):
                if attempt.trusted_until <= now:
                    attempt.give_up()
            soonest = min((a.trusted_until for a in self._attempts), default=now + margin)
            await asyncio.sleep(min(max(soonest - now, 0.05), margin / 2))

    async def _note_for_ever(self) -> None:
        """Note in the database that this worker is running, and which kinds it can run."""
        while True:
            try:
                await self._kernel.note_worker(self._current_note())
            except Exception as error:
                log.warning("cannot note the worker", reason=_reason(error))
            await asyncio.sleep(NOTE_SECONDS)

    # --- pilots ---------------------------------------------------------------------------------

    def _set_time_to_drain(self) -> None:
        after_seconds = self._rules.drain_after_seconds
        if after_seconds is not None:
            self._drains_at = self._kernel.monotonic() + after_seconds

    def _current_note(self) -> RunningWorker:
        if self._drains_at is None:
            return self._note
        left_seconds = max(self._drains_at - self._kernel.monotonic(), 0.0)
        return replace(self._note, drains_in_seconds=left_seconds)

    async def _leave_in_time(self) -> None:
        """Begin to drain when this worker has been idle for long, or its wall time ends soon."""
        idle_max = self._rules.idle_seconds_max
        busy_at = self._kernel.monotonic()
        while idle_max is not None or self._drains_at is not None:
            now = self._kernel.monotonic()
            if self._attempts:
                busy_at = now
            if self._drains_at is not None and now >= self._drains_at:
                log.info("leaving", reason="the wall time ends soon")
                return self.begin_to_drain()
            if idle_max is not None and now - busy_at >= idle_max:
                log.info("leaving", reason="idle", seconds=idle_max)
                return self.begin_to_drain()
            await asyncio.sleep(LEAVE_CHECK_SECONDS)

    # --- drain ----------------------------------------------------------------------------------

    async def _let_end(self) -> None:
        """Wait for attempts to end, then hand back those that did not."""
        if self._attempts:
            log.info("draining", attempts=len(self._attempts))
            await asyncio.wait(self._attempts.values(), timeout=self._rules.drain_grace_seconds)
        for attempt in list(self._attempts):
            attempt.hand_back()
        if self._attempts:
            await asyncio.wait(self._attempts.values(), timeout=HAND_BACK_SECONDS)
        left = list(self._attempts.values())
        if left:  # the database is away: their leases end, and another worker takes them
            log.warning("cannot hand back", attempts=len(left))
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=CANCEL_SECONDS)


def _reason(error: Exception) -> str:
    return error.detail if isinstance(error, AdeError) else type(error).__name__
