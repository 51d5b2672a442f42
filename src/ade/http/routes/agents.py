"""`/api/v1/agents`: which agents have a key; operators enrol them, replace keys and revoke them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import TypeAdapter

from ade.app.agents import Agents
from ade.app.enrolled_agents import EnrolledAgents
from ade.http.auth import Principal
from ade.http.body import read_small
from ade.http.context import AppContext
from ade.http.openapi import answers, takes
from ade.http.schemas.agents import (
    AgentBody,
    AgentKeyMade,
    AgentPage,
    AgentRequest,
    RotationRequest,
    agent_body,
    new_agent_body,
)

_AGENT = TypeAdapter(AgentRequest)
_ROTATION = TypeAdapter(RotationRequest)


def agent_routes(context: AppContext, agents: Agents, enrolled: EnrolledAgents) -> APIRouter:
    """Make the routes of agents."""
    router = APIRouter(prefix="/api/v1/agents", tags=["agents"])
    Operator = Annotated[Principal, Depends(context.authenticator.operator)]

    @router.get("", responses=answers(200, AgentPage, "Agents", 403))
    async def list_agents(operator: Operator) -> AgentPage:
        """List the agents that were enrolled, also revoked ones (operators only)."""
        found = await agents.list_with_hosts()
        return {"items": [agent_body(*both) for both in found], "next_cursor": None}

    @router.post(
        "",
        status_code=201,
        responses=answers(201, AgentKeyMade, "The key and a code", 403, 409, 413, 415, 422),
        openapi_extra=takes(AgentRequest),
    )
    async def enrol_agent(request: Request, operator: Operator) -> AgentKeyMade:
        """Give an agent a key, and a code that it can trade for another one (operators only)."""
        body = await read_small(request, _AGENT)
        made = await agents.enrol(body.name, body.labels, body.code_minutes)
        enrolled.forget()
        return new_agent_body(made)

    @router.post(
        "/{name}/rotate",
        responses=answers(200, AgentKeyMade, "The new key and a code", 403, 404, 409, 413, 422),
        openapi_extra=takes(RotationRequest, required=False),
    )
    async def rotate_key(request: Request, operator: Operator, name: str) -> AgentKeyMade:
        """Replace an agent's key; the former one works for a while longer (operators only)."""
        body = await read_small(request, _ROTATION, empty=b"{}")
        made = await agents.rotate(name, body.code_minutes, body.overlap_minutes)
        enrolled.forget()
        return new_agent_body(made)

    @router.delete("/{name}", responses=answers(200, AgentBody, "Revoked", 403, 404, 422))
    async def revoke_agent(operator: Operator, name: str) -> AgentBody:
        """Take an agent's keys and its code (operators only)."""
        revoked = await agents.revoke(name)
        enrolled.forget()
        return agent_body(revoked)

    return router
