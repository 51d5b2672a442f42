"""`/api/agent/jobs/{id}/output`: what containers write, in pieces of raw bytes by their offset.

Beyond the worker contract, for agents that share no folder with the server. The headers name the
attempt (`Attempt-Number`, `Attempt-Token`: `next-job` gives both to a worker that has the
capability `attempt_fencing_v1`) and the place (`Upload-Offset`). Each answer says how many bytes
are held. `Upload-Complete: ?1` marks the last piece; `Output-Cut: ?1` says that more is dropped.
"""

import re

from fastapi import APIRouter, Request, Response

from ade.app.agent_output import AgentOutput, AttemptProof
from ade.domain.errors import InvalidRequest, OutputGap
from ade.domain.units import MIB
from ade.http.body import read_raw
from ade.http.contract.context import ContractContext
from ade.http.contract.errors import detail_response
from ade.http.middleware import trace_id_in
from ade.storage.attempt_logs import LogState
from ade.store.rows import JobRow

PIECE_BYTES_MAX = MIB
OFFSET = "Upload-Offset"
COMPLETE = "Upload-Complete"
CUT = "Output-Cut"
TRUE = "?1"
_NUMBER = re.compile(r"[0-9]{1,15}")
_TOKEN = re.compile(r"[\x21-\x7e]{1,200}")


def agent_output_routes(context: ContractContext) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/agent/jobs/{job_id}", tags=["agents"])
    output: AgentOutput = context.output

    async def job_of(request: Request, job_id: str) -> JobRow:
        caller = await context.callers.worker(request.scope)
        return (await context.job(caller, job_id)).job

    @router.patch("/output", status_code=204)
    async def append_output(request: Request, job_id: str) -> Response:
        """Append output at its offset; repeating a piece is harmless, a gap is 409."""
        job = await job_of(request, job_id)
        proof, offset_bytes = _proof(request), _number(request, OFFSET)
        is_last = request.headers.get(COMPLETE) == TRUE
        piece = await read_raw(request, PIECE_BYTES_MAX)
        try:
            state = await output.append(job, proof, offset_bytes, piece, is_last=is_last)
        except OutputGap as gap:
            answer = detail_response(gap, trace_id_in(request.scope)).as_response()
            answer.headers[OFFSET] = str(gap.held_bytes)
            return answer
        return _answer(state)

    @router.head("/output", status_code=204)
    async def read_offset(request: Request, job_id: str) -> Response:
        """Say how many bytes of an attempt's output are held."""
        return _answer(await output.held(await job_of(request, job_id), _proof(request)))

    return router


def _answer(state: LogState) -> Response:
    headers = {OFFSET: str(state.held_bytes), "Cache-Control": "no-store"}
    return Response(status_code=204, headers=headers | ({CUT: TRUE} if state.is_cut else {}))


def _proof(request: Request) -> AttemptProof:
    token = request.headers.get("attempt-token", "")
    if not _TOKEN.fullmatch(token):
        raise InvalidRequest("Attempt-Token: send the attempt_token of next-job.")
    return AttemptProof(_number(request, "Attempt-Number"), token)


def _number(request: Request, name: str) -> int:
    value = request.headers.get(name, "")
    if not _NUMBER.fullmatch(value):
        raise InvalidRequest(f"{name}: send a number of at most 15 digits.")
    return int(value)
