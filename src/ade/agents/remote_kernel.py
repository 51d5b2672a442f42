"""The kernel of a worker that has no database: a client of a server.

The rule about time. A lease begins when the server grants it, at the latest when its answer is
sent; trust is counted from before the request was sent, as everywhere. So a claim waits for work at
most half as long as a lease may be trusted, and only while this worker holds nothing: the end of an
attempt never waits behind it.

    failure                              what happens
    -----------------------------------  -----------------------------------------------------------
    the server is away                   Unavailable: the worker tries again while its lease is
                                         trusted
    an answer is lost                    the worker repeats the call; an end that was recorded is
                                         answered with LeaseLost then
    the connection was cut while idle    the request is sent once more, unless it is a claim
    the answer to a claim is lost        its jobs wait for the end of their leases
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import structlog

from ade.agents.server_calls import ServerCalls
from ade.agents.uploads import Uploads
from ade.app.agent_messages import (
    ClaimMessage,
    ClaimsMessage,
    EndedMessage,
    EndMessage,
    OutcomeMessage,
    OutputMessage,
    RenewalMessage,
    RenewedMessage,
    ReportedMessage,
    ReportMessage,
    WorkerMessage,
)
from ade.clock import Clock, SystemClock
from ade.domain.errors import AdeError, LeaseLost, Unauthenticated
from ade.domain.lease import LeaseRule
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish, Finished
from ade.stages.finish_and_claim import FinishedAndClaimed
from ade.stages.output import OutputAppend
from ade.stages.renew import lease_lost
from ade.stages.report import AttemptReport
from ade.stages.workers import RunningWorker
from ade.store.rows import Claim, JobRef, LeaseRef, Renewed

WAIT_SECONDS_MAX = 25
# Before a claim is tried again: at random up to this, in addition to the worker's own pause.
AWAY_SECONDS = 2.0
REFUSED_SECONDS = 60.0
# Until the server has said how long its leases last: short, so that a first claim does not wait.
FIRST_LEASE = LeaseRule(lease_seconds=10, margin_seconds=3, renew_seconds=2)
log = structlog.get_logger()


class RemoteKernel:
    """Claim jobs from a server and report to it.

    `http` holds the server's address and the agent's key; `uploads` knows which files were sent.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        clock: Clock | None = None,
        uploads: Uploads | None = None,
    ) -> None:
        self._calls = ServerCalls(http)
        self._uploads = uploads or Uploads(self._calls)
        self._clock = clock or SystemClock()
        self._lease = FIRST_LEASE
        self._held: dict[LeaseRef, float] = {}  # since when
        self._noted: WorkerMessage | None = None

    @property
    def lease(self) -> LeaseRule:
        """Return how long a lease lasts, as the server last said."""
        return self._lease

    def monotonic(self) -> float:
        """Return the time of the clock that trust in a lease is counted on."""
        return self._clock.monotonic()

    @contextmanager
    def subscribe(self, *topics: str) -> Iterator["NoHints"]:
        """Give no hints: stop requests come with renewals, and work by waiting claims."""
        yield NoHints()

    def event_exporter(self, jobs_dir: Path) -> "NoEventFiles":
        """Export nothing: the server has the events."""
        return NoEventFiles()

    async def connect(self) -> None:
        """Check that the server answers and takes the key; learn how long its leases last."""
        answer: RenewedMessage = await self._calls.post(
            "renewals", RenewalMessage([]), RenewedMessage
        )
        self._lease = answer.lease

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim jobs; while nothing runs here, wait for some."""
        trusted_seconds = self._lease.lease_seconds - self._lease.margin_seconds
        wait_seconds = 0 if self._held else int(min(WAIT_SECONDS_MAX, trusted_seconds / 2))
        message = ClaimMessage(request.limit, sorted(request.kinds or ()))
        try:
            answer: ClaimsMessage = await self._calls.post(
                "claims", message, ClaimsMessage, wait_seconds=wait_seconds, repeats=False
            )
        except AdeError as error:
            is_refused = isinstance(error, Unauthenticated)
            await self._pause(REFUSED_SECONDS if is_refused else AWAY_SECONDS)
            raise
        self._lease = answer.lease
        now = self.monotonic()
        for one in answer.claims:
            self._held[LeaseRef(one.workspace_id, one.id, one.fence)] = now
        return answer.claims

    async def _pause(self, seconds_max: float) -> None:
        """Wait for a random time: many agents must not come back in the same moment."""
        await asyncio.sleep(random.uniform(0, seconds_max))

    async def renew(self, leases: list[LeaseRef]) -> Sequence[Renewed | AdeError]:
        """Renew leases; for a lost one, LeaseLost stands in its place.

        What is not to be renewed any more was given up, unless it was claimed just now.
        """
        begun_before = self.monotonic() - self._lease.lease_seconds
        kept = set(leases)
        for lease in [one for one, since in self._held.items() if since < begun_before]:
            if lease not in kept:
                self._forget(lease)
        if not leases:
            return []
        answer: RenewedMessage = await self._calls.post(
            "renewals", RenewalMessage(leases), RenewedMessage
        )
        self._lease = answer.lease
        answers = list[Renewed | AdeError]()
        for lease, one in zip(leases, answer.renewed, strict=True):
            if one is None:
                self._forget(lease)
            answers.append(lease_lost(lease) if one is None else Renewed(*lease, one[0]))
        return answers

    async def finish(self, end: Finish) -> Finished:
        """Record how an attempt ended, or raise LeaseLost."""
        receipts = self._uploads.receipts(end.lease)
        outcome = None if end.outcome is None else OutcomeMessage.of(end.outcome, receipts)
        output = None if end.output is None else OutputMessage.of(end.output)
        message = EndMessage(end.lease, outcome, output)
        try:
            answer: EndedMessage = await self._calls.post("ends", message, EndedMessage)
        except LeaseLost:
            self._forget(end.lease)
            raise
        self._forget(end.lease)
        return Finished(answer.status)

    def _forget(self, lease: LeaseRef) -> None:
        self._held.pop(lease, None)
        self._uploads.forget(lease)

    async def finish_and_claim(
        self, ends: list[Finish], request: ClaimRequest
    ) -> FinishedAndClaimed:
        """Record the attempts that ended, then claim the next jobs."""
        answers = await asyncio.gather(*map(self.finish, ends), return_exceptions=True)
        finished = list[Finished | LeaseLost]()
        for answer in answers:
            if not isinstance(answer, Finished | LeaseLost):
                raise answer
            finished.append(answer)
        try:
            claims = await self.claim(request)
        except AdeError as error:  # the ends are recorded, and must be known to be
            log.warning("cannot claim", reason=error.detail)
            claims = []
        return FinishedAndClaimed(finished, claims)

    async def report(self, report: AttemptReport) -> bool:
        """Report progress while holding a lease; False if the job's log is full."""
        message = ReportMessage(report.lease, report.progress or {})
        answer: ReportedMessage = await self._calls.post("reports", message, ReportedMessage)
        return answer.kept

    async def append_output(self, append: OutputAppend) -> None:
        """Append what a job writes while holding its lease, or raise LeaseLost."""
        await self._calls.post("output", OutputMessage.of(append), None)

    async def note_worker(self, worker: RunningWorker) -> None:
        """Say which kinds this worker runs, and how many jobs at once."""
        self._noted = WorkerMessage(
            worker.host,
            sorted(worker.kinds),
            worker.slots,
            worker.drains_in_seconds,
            worker.block,
        )
        await self._calls.post("workers", self._noted, None)

    async def forget_worker(self, name: str) -> None:
        """Say that this worker has stopped."""
        self._held.clear()
        if self._noted is not None:
            await self._calls.post("workers", replace(self._noted, has_stopped=True), None)


class NoHints:
    """Wait for the timeout."""

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait; there is never a hint."""
        await asyncio.sleep(timeout_seconds)
        return False


class NoEventFiles:
    """Export nothing."""

    async def export(self, ref: JobRef) -> None:
        """Do nothing."""
