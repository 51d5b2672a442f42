"""`/api/agent/next-job`, `job-status`, `heartbeat`: what a worker of the contract calls.

Workers in the field end when `next-job` answers with an error. So one that is allowed in gets 204
whatever is the matter: there is no job for it, the server is draining or in safe mode, or the
database is away. The header `ADE-No-Job` says which.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints, TypeAdapter
from starlette.types import Receive, Scope

from ade.app.agent_payload import CONTAINER_SPEC, job_payload
from ade.app.agent_views import status_body
from ade.app.agent_work import AskingAgent
from ade.domain.agent_reports import parse_status
from ade.domain.errors import (
    AdeError,
    Forbidden,
    InvalidRequest,
    NotFound,
    StaleAttempt,
    Unavailable,
)
from ade.domain.units import MIB
from ade.domain.vocabulary import AgentStatus
from ade.http.body import SMALL_BODY_BYTES_MAX, parse, read_body
from ade.http.contract.callers import ContractCaller
from ade.http.contract.context import NO_JOB, ContractContext, find_job
from ade.http.contract.described import described
from ade.http.contract.disconnect import disconnect
from ade.http.responses import RawResponse
from ade.stages.agents.report import AgentReport
from ade.store.rows import Claim, JobRef

FENCING = "attempt_fencing_v1"
NO_JOB_HEADER = b"ade-no-job"
WAIT_SECONDS_MAX = 25
TROUBLE_SECONDS = 2.0
REPORT_BYTES_MAX = MIB
INFO_CHARS_MAX = 16_384
DETAILS_CHARS_MAX = 16_384
CODE_CHARS_MAX = 100
ACTIVE_JOBS_MAX = 1000
PREFER_WAIT = re.compile(rb"(?:^|[,;\s])wait=(\d{1,6})")
log = structlog.get_logger()

WorkerId = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,100}$")]
Word = Annotated[str, StringConstraints(max_length=100)]


@dataclass(frozen=True, slots=True)
class NextJobMessage:
    """Ask for a job."""

    worker_id: WorkerId | None = None
    capabilities: Annotated[list[Word], Field(max_length=50)] | None = None
    labels: Annotated[list[Word], Field(max_length=50)] | None = None
    wait: Annotated[float, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """Report on a job."""

    job_id: Annotated[str, StringConstraints(max_length=100)]
    status: Word
    worker_id: WorkerId | None = None
    container_id: Annotated[str, StringConstraints(max_length=300)] | None = None
    container_name: Annotated[str, StringConstraints(max_length=300)] | None = None
    exit_code: int | None = None
    error: Any = None
    details: Any = None
    result: Any = None
    attempt_number: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    attempt_token: Word | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatMessage:
    """Say that a worker is there, how it is, and which jobs it runs."""

    worker_id: WorkerId | None = None
    info: dict[str, Any] | None = None
    active_jobs: Any = None


_NEXT = TypeAdapter(NextJobMessage)
_STATUS = TypeAdapter(StatusMessage)
_BEAT = TypeAdapter(HeartbeatMessage)


class WorkerCalls:
    """Answer the calls of workers."""

    def __init__(self, context: ContractContext) -> None:
        self._context = context
        self._available = frozenset(context.settings.available_hosts)

    def routes(self) -> dict[str, Callable[[Scope, Receive], Awaitable[RawResponse]]]:
        """Return the routes by their paths."""
        return {
            "/api/agent/next-job": self.next_job,
            "/api/agent/job-status": self.job_status,
            "/api/agent/heartbeat": self.heartbeat,
        }

    async def next_job(self, scope: Scope, receive: Receive) -> RawResponse:
        """Give a worker a job; with `wait`, wait for one up to as many seconds, 25 at most."""
        try:
            caller = await self._context.callers.worker(scope)
        except Unavailable as error:  # whose key it is cannot be looked up
            return _no_job(error.code)
        message = parse(await read_body(scope, receive, SMALL_BODY_BYTES_MAX), _NEXT)
        name = _speaks_for(caller, message.worker_id)
        if self._available and name not in self._available:
            raise Forbidden(f"{name} is not one of AVAILABLE_HOSTS, so it gets no jobs.")
        preferred = _preferred_wait(scope)
        wait_seconds = min(message.wait or preferred or 0, WAIT_SECONDS_MAX)
        capabilities = frozenset(message.capabilities or ())
        labels = caller.labels if caller.name is not None else frozenset(message.labels or ())
        agent = AskingAgent(name, labels, FENCING in capabilities)
        async with disconnect(receive) as gone:
            try:
                answer = await self._next_job(agent, capabilities, wait_seconds, gone)
            except Exception as error:
                answer = _no_job(_code(error, name))
                # Else a long poll would be sent again at once, by every worker.
                await asyncio.wait({gone}, timeout=min(wait_seconds, TROUBLE_SECONDS))
        if preferred is not None:
            applied = (b"preference-applied", b"wait=%d" % min(preferred, WAIT_SECONDS_MAX))
            answer = answer._replace(headers=(*answer.headers, applied))
        return answer

    async def _next_job(
        self,
        agent: AskingAgent,
        capabilities: frozenset[str],
        wait_seconds: float,
        gone: "asyncio.Future[None]",
    ) -> RawResponse:
        work = self._context.work
        while (claim := await work.next_job(agent, wait_seconds, gone)) is not None:
            try:
                payload = await self._payload(claim, agent, whole=CONTAINER_SPEC in capabilities)
            except InvalidRequest as error:  # submitted to a server of another version
                await self._refuse(claim, agent, error)
                continue
            except BaseException:
                await work.give_back(agent.name, claim)
                raise
            if gone.done():
                await work.give_back(agent.name, claim)
                break
            return RawResponse(200, json.dumps(payload).encode())
        return _no_job(work.why_none(agent))

    async def _payload(self, claim: Claim, agent: AskingAgent, *, whole: bool) -> dict[str, Any]:
        known = await self._context.kernel.read(lambda reading: reading.agent_jobs.find(claim.id))
        if known is None:
            raise NotFound(NO_JOB)
        payload = job_payload(claim, known, whole=whole)
        if agent.fenced:
            payload["attempt_number"] = claim.fence
            payload["attempt_token"] = await self._context.tokens.issue(claim.id, claim.fence)
        return payload

    async def _refuse(self, claim: Claim, agent: AskingAgent, error: InvalidRequest) -> None:
        ref = JobRef(claim.workspace_id, claim.id)
        facts = {"error": f"The job cannot be run: {error.detail}"}
        report = AgentReport(ref, agent.name, AgentStatus.FAILED, facts, claim.fence)
        await self._context.kernel.report_status(report)

    async def job_status(self, scope: Scope, receive: Receive) -> RawResponse:
        """Record what a worker reports of a job that it holds; repeating it is harmless."""
        caller = await self._context.callers.worker(scope)
        message = parse(await read_body(scope, receive, REPORT_BYTES_MAX), _STATUS)
        job_id, status = message.job_id.lower(), parse_status(message.status)
        kernel = self._context.kernel
        found = await kernel.read(lambda reading: find_job(reading, job_id))
        if found is None:
            raise NotFound(NO_JOB)
        worker_id = message.worker_id or caller.name or found.job.lease_owner
        name = _speaks_for(caller, worker_id)
        if (message.attempt_number is None) != (message.attempt_token is None):
            raise StaleAttempt("attempt_number and attempt_token belong together.")
        if message.attempt_number is not None:
            token = message.attempt_token or ""
            await self._context.tokens.check(job_id, message.attempt_number, token)
        self._context.hosts.reported(name)
        ref = JobRef(found.job.workspace_id, found.job.id)
        facts = _facts(message)
        result = _without_nan(message.result)
        report = AgentReport(ref, name, status, facts, message.attempt_number, result)
        await kernel.report_status(report)
        changed = await kernel.read(lambda reading: find_job(reading, job_id))
        body = status_body(changed or found)
        return RawResponse(200, json.dumps(body).encode())

    async def heartbeat(self, scope: Scope, receive: Receive) -> RawResponse:
        """Note that a worker is there; the jobs that it lists as active stay its own."""
        caller = await self._context.callers.worker(scope)
        message = parse(await read_body(scope, receive, SMALL_BODY_BYTES_MAX), _BEAT)
        name = _speaks_for(caller, message.worker_id)
        info = message.info or {}
        listed = message.active_jobs if message.active_jobs is not None else info.get("active_jobs")
        self._context.hosts.beat(name, _info_text(info), _active_jobs(listed))
        return RawResponse(200, b'{"status":"ok"}')


def worker_routes(calls: WorkerCalls) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/agent", tags=["agents"])

    @router.post(
        "/next-job", **described(_NEXT, 401, 403, 422, s200="A job", s204="There is none now")
    )
    async def next_job(request: Request) -> Response:
        """Give a worker a job, or answer 204; with `wait`, wait for one up to 25 s."""
        return (await calls.next_job(request.scope, request.receive)).as_response()

    @router.post(
        "/job-status", **described(_STATUS, 401, 403, 404, 409, 422, s200="The job's status")
    )
    async def job_status(request: Request) -> Response:
        """Record what a worker reports of a job that it holds; 409 if it may not."""
        return (await calls.job_status(request.scope, request.receive)).as_response()

    @router.post("/heartbeat", **described(_BEAT, 401, 403, 422, s200="It is noted"))
    async def heartbeat(request: Request) -> Response:
        """Note that a worker is there, how it is, and which jobs it runs."""
        return (await calls.heartbeat(request.scope, request.receive)).as_response()

    return router


def _speaks_for(caller: ContractCaller, worker_id: str | None) -> str:
    """Return the worker that a request is from, if its caller may speak for it."""
    name = worker_id or caller.name
    if name is None:
        raise InvalidRequest("worker_id: say which worker this is.")
    caller.check_worker(name)
    return name


def _code(error: Exception, worker_id: str) -> str:
    """Return the code of an error; an unexpected one is logged."""
    if isinstance(error, AdeError):
        return error.code
    log.error("next-job failed", worker_id=worker_id, exc_info=error)
    return AdeError.code


def _no_job(reason: str) -> RawResponse:
    return RawResponse(204, b"", ((NO_JOB_HEADER, reason.encode()),))


def _preferred_wait(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"prefer" and (found := PREFER_WAIT.search(value)):
            return int(found[1])
    return None


def _facts(message: StatusMessage) -> dict[str, Any]:
    """Return what a report says beside the status; what it leaves out stays as it was."""
    error, details = message.error, _without_nan(message.details)
    if error is not None and not isinstance(error, str):
        error = json.dumps(error)
    if details is not None and len(text := json.dumps(details)) > DETAILS_CHARS_MAX:
        code = details.get("code") if isinstance(details, Mapping) else None
        known = {"code": code[:CODE_CHARS_MAX]} if isinstance(code, str) else {}
        details = known | {"truncated": text[:DETAILS_CHARS_MAX]}
    facts = {
        "container_id": message.container_id,
        "container_name": message.container_name,
        "exit_code": message.exit_code,
        "error": error[:DETAILS_CHARS_MAX] if error is not None else None,
        "details": details,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _info_text(info: dict[str, Any]) -> str:
    """Write what a worker says of itself as JSON, which has no NaN, within a limit."""
    text = json.dumps(_without_nan(info))
    if len(text) > INFO_CHARS_MAX:
        return json.dumps({"truncated": f"the info has more than {INFO_CHARS_MAX} characters"})
    return text


def _without_nan(value: Any) -> Any:
    """Replace NaN and Infinity, which Python writes and JSON does not have, by null."""
    text = json.dumps(value)
    if "NaN" in text or "Infinity" in text:
        return json.loads(text, parse_constant=lambda _: None)
    return value


def _active_jobs(listed: Any) -> frozenset[str]:
    """Read which jobs a worker says are active: ids, or objects that have one; or only a count."""
    if not isinstance(listed, list):
        return frozenset()
    ids = [one.get("job_id") if isinstance(one, dict) else one for one in listed[:ACTIVE_JOBS_MAX]]
    return frozenset(one.lower() for one in ids if isinstance(one, str))
