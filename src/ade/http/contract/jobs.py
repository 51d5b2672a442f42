"""`/status/{id}` and its neighbours: what the worker contract shows of jobs."""

from fastapi import APIRouter, Request, Response

from ade.app.agent_views import status_body
from ade.domain.errors import NotFound
from ade.domain.vocabulary import AgentStatus
from ade.http.contract.context import ContractContext
from ade.http.responses import json_response


def job_routes(context: ContractContext) -> APIRouter:
    """Make the routes that show jobs."""
    router = APIRouter(tags=["jobs"])

    @router.get("/status/{job_id}")
    async def read_status(request: Request, job_id: str) -> Response:
        """Show the status of a job; 404 with the status `not_found` if there is none."""
        caller = await context.callers.caller(request.scope)
        try:
            found = await context.job(caller, job_id)
        except NotFound as error:
            unknown = {
                "detail": error.detail,
                "code": error.code,
                "job_id": job_id,
                "status": AgentStatus.NOT_FOUND.value,
            }
            return json_response(unknown, 404)
        return json_response(status_body(found))

    return router
