"""`/api/agent/claims`, `renewals`, `ends`, `reports`, `output`, `workers`: jobs that agents run.

Every message but a claim names a lease with its fence, and an agent may name only its own. The
owner of a lease is the agent that the key belongs to. An operator's key may speak for any agent,
which the header `Agent-Name` names then.
"""

import re
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter
from starlette.types import Scope

from ade.app.agent_leases import AgentLeases
from ade.app.agent_messages import (
    ClaimMessage,
    ClaimsMessage,
    EndedMessage,
    EndMessage,
    OutputMessage,
    RenewalMessage,
    RenewedMessage,
    ReportedMessage,
    ReportMessage,
    WorkerMessage,
)
from ade.domain.errors import AdeError, InvalidRequest, Unauthenticated
from ade.domain.units import MIB
from ade.http.body import parse, read_body
from ade.http.contract.callers import Callers
from ade.http.contract.disconnect import disconnect

MESSAGE_BYTES_MAX = 16 * MIB
WAIT_SECONDS_MAX = 25
_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})")
_CLAIM = TypeAdapter(ClaimMessage)
_CLAIMS = TypeAdapter(ClaimsMessage)
_RENEWAL = TypeAdapter(RenewalMessage)
_RENEWED = TypeAdapter(RenewedMessage)
_END = TypeAdapter(EndMessage)
_ENDED = TypeAdapter(EndedMessage)
_REPORT = TypeAdapter(ReportMessage)
_REPORTED = TypeAdapter(ReportedMessage)
_OUTPUT = TypeAdapter(OutputMessage)
_WORKER = TypeAdapter(WorkerMessage)
AGENT_NAME = b"agent-name"
_NAME = re.compile(r"[\x21-\x7e]{1,100}")


def agent_job_routes(leases: AgentLeases, callers: Callers) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/agent", tags=["agents"])

    async def read(request: Request, message: TypeAdapter[Any]) -> Any:
        body = await read_body(request.scope, request.receive, MESSAGE_BYTES_MAX)
        return parse(body, message)

    @router.post("/claims")
    async def claim_jobs(request: Request) -> Response:
        """Claim jobs; with `Prefer: wait=n`, wait for some up to n seconds, 25 at most."""
        name = await agent_name(callers, request.scope)
        message: ClaimMessage = await read(request, _CLAIM)
        wait_seconds = _wait_seconds(request)
        async with disconnect(request.receive) as gone:
            claims = await leases.claim(
                name, message.limit, frozenset(message.kinds), wait_seconds or 0, gone
            )
        answer = _json(_CLAIMS, ClaimsMessage(leases.kernel.lease, claims))
        if wait_seconds is not None:
            answer.headers["Preference-Applied"] = f"wait={wait_seconds}"
        return answer

    @router.post("/renewals")
    async def renew_leases(request: Request) -> Response:
        """Renew leases, and tell which jobs are to be stopped."""
        name = await agent_name(callers, request.scope)
        message: RenewalMessage = await read(request, _RENEWAL)
        answers = await leases.renew(name, message.leases)
        renewed = [None if isinstance(one, AdeError) else (one.stop_request,) for one in answers]
        return _json(_RENEWED, RenewedMessage(leases.kernel.lease, renewed))

    @router.post("/ends")
    async def record_end(request: Request) -> Response:
        """Record how an attempt ended, once; 409 `lease_lost` afterwards."""
        name = await agent_name(callers, request.scope)
        message: EndMessage = await read(request, _END)
        return _json(_ENDED, EndedMessage((await leases.finish(name, message)).status))

    @router.post("/reports")
    async def record_report(request: Request) -> Response:
        """Record the progress of an attempt."""
        name = await agent_name(callers, request.scope)
        message: ReportMessage = await read(request, _REPORT)
        return _json(_REPORTED, ReportedMessage(await leases.report(name, message)))

    @router.post("/output", status_code=204)
    async def append_output(request: Request) -> Response:
        """Append output of an attempt; what is stored already is passed over."""
        name = await agent_name(callers, request.scope)
        await leases.append_output(name, await read(request, _OUTPUT))
        return Response(status_code=204)

    @router.post("/workers", status_code=204)
    async def note_worker(request: Request) -> Response:
        """Note what an agent runs in its sandbox, every few seconds and when it stops."""
        name = await agent_name(callers, request.scope)
        await leases.note_worker(name, await read(request, _WORKER))
        return Response(status_code=204)

    return router


async def agent_name(callers: Callers, scope: Scope) -> str:
    """Authenticate a request, and return the name of the agent that it is from."""
    caller = await callers.worker(scope)
    if caller.name is None and caller.user is None:  # a trusted network, for containers only
        raise Unauthenticated("This needs an agent's or an operator's key.")
    given = dict(scope["headers"]).get(AGENT_NAME)
    name = given.decode("latin-1") if given is not None else caller.name
    if name is None:
        raise InvalidRequest("This key may speak for any agent: name it in Agent-Name.")
    if not _NAME.fullmatch(name):
        raise InvalidRequest("Agent-Name: 1 to 100 printable ASCII characters without spaces.")
    caller.check_worker(name)
    return name


def _json(adapter: TypeAdapter[Any], value: Any) -> Response:
    return Response(adapter.dump_json(value), media_type="application/json")


def _wait_seconds(request: Request) -> int | None:
    found = _WAIT.search(request.headers.get("prefer", ""))
    return None if found is None else min(int(found[1]), WAIT_SECONDS_MAX)
