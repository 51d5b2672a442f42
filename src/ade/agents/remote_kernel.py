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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import structlog
from pydantic import TypeAdapter, ValidationError

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
)
from ade.clock import Clock, SystemClock
from ade.domain.errors import AdeError, InvalidRequest, LeaseLost, Unauthenticated, Unavailable
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
DETAIL_CHARS_MAX = 300
# Until the server has said how long its leases last: short, so that a first claim does not wait.
FIRST_LEASE = LeaseRule(lease_seconds=10, margin_seconds=3, renew_seconds=2)
log = structlog.get_logger()
_MESSAGES = {
    message: TypeAdapter[Any](message)
    for message in (
        ClaimMessage,
        ClaimsMessage,
        EndMessage,
        EndedMessage,
        OutputMessage,
        RenewalMessage,
        RenewedMessage,
        ReportMessage,
        ReportedMessage,
    )
}


class RemoteKernel:
    """Claim jobs from a server and report to it; `http` holds its address and the agent's key."""

    def __init__(self, http: httpx.AsyncClient, clock: Clock | None = None) -> None:
        self._http = http
        self._clock = clock or SystemClock()
        self._lease = FIRST_LEASE
        self._held = set[LeaseRef]()

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

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim jobs; while nothing runs here, wait for some."""
        trusted_seconds = self._lease.lease_seconds - self._lease.margin_seconds
        wait_seconds = 0 if self._held else int(min(WAIT_SECONDS_MAX, trusted_seconds / 2))
        message = ClaimMessage(request.limit, sorted(request.kinds or ()))
        answer: ClaimsMessage = await self._post(
            "claims", message, ClaimsMessage, wait_seconds=wait_seconds, repeats=False
        )
        self._lease = answer.lease
        self._held.update(LeaseRef(one.workspace_id, one.id, one.fence) for one in answer.claims)
        return answer.claims

    async def renew(self, leases: list[LeaseRef]) -> Sequence[Renewed | AdeError]:
        """Renew leases; for a lost one, LeaseLost stands in its place."""
        if not leases:
            return []
        answer: RenewedMessage = await self._post(
            "renewals", RenewalMessage(leases), RenewedMessage
        )
        self._lease = answer.lease
        return [
            lease_lost(lease) if one is None else Renewed(*lease, one[0])
            for lease, one in zip(leases, answer.renewed, strict=True)
        ]

    async def finish(self, end: Finish) -> Finished:
        """Record how an attempt ended, or raise LeaseLost."""
        outcome = None if end.outcome is None else OutcomeMessage.of(end.outcome)
        output = None if end.output is None else OutputMessage.of(end.output)
        message = EndMessage(end.lease, outcome, output)
        try:
            answer: EndedMessage = await self._post("ends", message, EndedMessage)
        except LeaseLost:
            self._held.discard(end.lease)
            raise
        self._held.discard(end.lease)
        return Finished(answer.status)

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
        except Unavailable as error:  # the ends are recorded, and must be known to be
            log.warning("cannot claim", reason=error.detail)
            claims = []
        return FinishedAndClaimed(finished, claims)

    async def report(self, report: AttemptReport) -> bool:
        """Report progress while holding a lease; False if the job's log is full."""
        message = ReportMessage(report.lease, report.progress or {})
        answer: ReportedMessage = await self._post("reports", message, ReportedMessage)
        return answer.kept

    async def append_output(self, append: OutputAppend) -> None:
        """Append what a job writes while holding its lease, or raise LeaseLost."""
        await self._post("output", OutputMessage.of(append), None)

    async def note_worker(self, worker: RunningWorker) -> None:
        """Do nothing: an agent's heartbeat says which kinds it runs."""

    async def forget_worker(self, name: str) -> None:
        """Forget what was held; the server sees the end of the heartbeats."""
        self._held.clear()

    async def _post(
        self,
        path: str,
        message: Any,
        answer: type[Any] | None,
        *,
        wait_seconds: int = 0,
        repeats: bool = True,
    ) -> Any:
        headers = {"Content-Type": "application/json"}
        if wait_seconds:
            headers["Prefer"] = f"wait={wait_seconds}"
        body = _MESSAGES[type(message)].dump_json(message)
        try:
            response = await self._sent(path, body, headers, repeats)
        except httpx.HTTPError as error:
            raise Unavailable(f"The server does not answer: {type(error).__name__}.") from None
        if response.is_success:
            return None if answer is None else _read(answer, response.content)
        raise _error(response)

    async def _sent(
        self, path: str, body: bytes, headers: dict[str, str], repeats: bool
    ) -> httpx.Response:
        try:
            return await self._http.post(f"/api/agent/{path}", content=body, headers=headers)
        except httpx.RemoteProtocolError:  # a connection that the server had closed meanwhile
            if not repeats:
                raise
            return await self._http.post(f"/api/agent/{path}", content=body, headers=headers)


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


def _read(answer: type[Any], body: bytes) -> Any:
    try:
        return _MESSAGES[answer].validate_json(body)
    except ValidationError:
        raise Unavailable("The server's answer cannot be read; are both of one version?") from None


def _error(response: httpx.Response) -> AdeError:
    """Make the error that the server answered with."""
    try:
        problem = response.json()
        code, detail = str(problem["code"]), str(problem["detail"])[:DETAIL_CHARS_MAX]
    except (ValueError, LookupError, TypeError):
        code, detail = "", f"The server answered {response.status_code}."
    if code == LeaseLost.code:
        return LeaseLost(detail)
    if response.status_code in (401, 403):
        return Unauthenticated(detail)
    return Unavailable(detail) if response.status_code >= 429 else InvalidRequest(detail)
