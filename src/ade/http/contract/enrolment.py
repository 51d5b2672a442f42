"""`/api/agent/enrol`: trade a one-time code for the agent's key."""

import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import StringConstraints, TypeAdapter

from ade.app.agents import Agents
from ade.app.enrolled_agents import EnrolledAgents
from ade.domain.errors import Unauthenticated
from ade.http.body import read_small
from ade.http.contract.described import described
from ade.http.responses import json_response
from ade.http.wrong_keys import WrongKeys


@dataclass(frozen=True, slots=True)
class CodeMessage:
    """Hold the code that an operator gave to the agent."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=200)]


_CODE = TypeAdapter(CodeMessage)


def enrolment_routes(agents: Agents, enrolled: EnrolledAgents, wrong_keys: WrongKeys) -> APIRouter:
    """Make the route."""
    router = APIRouter(prefix="/api/agent", tags=["agents"])

    @router.post("/enrol", **described(_CODE, 401, 422, s200="The key, shown once"))
    async def trade_code(request: Request) -> Response:
        """Trade a code for the agent's key, once; 401 if the code is not valid."""
        message = await read_small(request, _CODE)
        try:
            made = await agents.trade(message.code)
        except Unauthenticated:
            wrong_keys.count(request.scope)
            raise
        enrolled.forget()
        agent = made.agent
        body = {
            "agent_id": agent.id,
            "name": agent.name,
            "labels": json.loads(agent.labels),
            "key": made.key,
        }
        return json_response(body, headers={"cache-control": "no-store"})

    return router
