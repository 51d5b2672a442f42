"""`/stop/{id}`, `/job/{id}`, `/ops/...`: stop and delete jobs, and repair what hangs."""

import asyncio
import shutil
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter

from ade.app.agent_views import status_body
from ade.domain.errors import Forbidden
from ade.domain.job import StopRequest
from ade.http.auth import Role
from ade.http.body import read_small
from ade.http.contract.callers import ContractCaller
from ade.http.contract.context import ContractContext, user_of
from ade.http.query import check_parameters
from ade.http.responses import json_response
from ade.stages.force import Force, OperatorAction
from ade.stages.stop import Stop
from ade.store.rows import AgentJob, JobRef

REASON_CHARS_MAX = 500
NOT_AN_OPERATOR = "This needs an operator's key."
Reason = Annotated[str, StringConstraints(max_length=REASON_CHARS_MAX)]


class StopRequestBody(BaseModel):
    """Why a job is stopped."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason | None = None


class OperatorRequest(BaseModel):
    """Whether an action is carried out whatever the status of the job, and why."""

    model_config = ConfigDict(extra="forbid")

    force: bool = False
    reason: Reason | None = None


_STOP = TypeAdapter(StopRequestBody)
_OPERATOR = TypeAdapter(OperatorRequest)


def job_control_routes(context: ContractContext) -> APIRouter:
    """Make the routes."""
    router = APIRouter(tags=["jobs"])
    kernel = context.kernel

    async def operator(request: Request) -> ContractCaller:
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        if caller.user is None or not caller.user.operator:
            raise Forbidden(NOT_AN_OPERATOR)
        return caller

    async def shown(caller: ContractCaller, job_id: str) -> Response:
        changed = await context.job(caller, job_id)
        await context.mirror.refresh(_ref(changed))
        return json_response(status_body(changed))

    @router.post("/stop/{job_id}")
    async def stop_job(request: Request, job_id: str) -> Response:
        """Cancel a job that waits, or ask the worker that runs it to stop it."""
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        found = await context.job(caller, job_id, Role.EDITOR)
        body = await read_small(request, _STOP, empty=b"{}")
        await kernel.stop(Stop(_ref(found), StopRequest.CANCEL, user_of(caller), body.reason))
        return await shown(caller, job_id)

    @router.delete("/job/{job_id}")
    async def delete_job(request: Request, job_id: str) -> Response:
        """Delete a job that has ended, with its logs and files."""
        caller = await context.callers.caller(request.scope)
        check_parameters(request)
        found = await context.job(caller, job_id, Role.EDITOR)
        await kernel.delete(_ref(found))
        await context.mirror.delete(found.job.id)
        folder = context.settings.jobs_dir / found.job.id
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return json_response({"job_id": found.job.id, "deleted": True})

    async def change(
        request: Request, job_id: str, action: OperatorAction, asked: tuple[bool, str | None]
    ) -> Response:
        caller = await operator(request)
        found = await context.job(caller, job_id)
        body = await read_small(request, _OPERATOR, empty=b"{}")
        forced, reason = asked[0] or body.force, body.reason or asked[1]
        await kernel.force(Force(_ref(found), action, user_of(caller), reason, forced))
        return await shown(caller, job_id)

    Forced = Annotated[bool, Query(description="the same as `force` in the body")]
    Why = Annotated[
        str | None,
        Query(max_length=REASON_CHARS_MAX, description="the same as `reason` in the body"),
    ]

    @router.post("/ops/jobs/{job_id}/requeue")
    async def requeue_job(
        request: Request, job_id: str, force: Forced = False, reason: Why = None
    ) -> Response:
        """Queue a job again; with `force` also one that runs, which may then run twice."""
        return await change(request, job_id, OperatorAction.REQUEUE, (force, reason))

    @router.post("/ops/jobs/{job_id}/fail")
    async def fail_job(
        request: Request, job_id: str, force: Forced = False, reason: Why = None
    ) -> Response:
        """Mark a job as failed; with `force` also one that has ended."""
        return await change(request, job_id, OperatorAction.FAIL, (force, reason))

    @router.post("/ops/jobs/{job_id}/cancel")
    async def cancel_job(
        request: Request, job_id: str, force: Forced = False, reason: Why = None
    ) -> Response:
        """Mark a job as cancelled; with `force` also one that runs or has ended."""
        return await change(request, job_id, OperatorAction.CANCEL, (force, reason))

    @router.post("/ops/queue/cleanup")
    async def clean_queue(request: Request) -> Response:
        """Remove the files in `queue/` that stand for no waiting job, and write missing ones."""
        await operator(request)
        removed = await context.mirror.clean_queue()
        return json_response({"removed": len(removed), "job_ids": removed})

    return router


def _ref(found: AgentJob) -> JobRef:
    return JobRef(found.job.workspace_id, found.job.id)
