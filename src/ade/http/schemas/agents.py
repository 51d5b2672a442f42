"""Agents as the API shows them, and the bodies that enrol them."""

import json
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.domain.enrolment import (
    CODE_MINUTES,
    CODE_MINUTES_MAX,
    LABELS_MAX,
    OVERLAP_MINUTES,
    OVERLAP_MINUTES_MAX,
)
from ade.http.schemas.body import RequestModel, Text, Time, Uuid, optional_time
from ade.store.rows import AgentRow, HostRow, NewAgentKey

CodeMinutes = Annotated[int, Field(ge=1, le=CODE_MINUTES_MAX)]


class AgentRequest(RequestModel):
    """An agent to enrol; its name is the `worker_id` that it sends."""

    name: Text
    labels: list[Text] = Field(default=[], max_length=LABELS_MAX)
    code_minutes: CodeMinutes = CODE_MINUTES


class RotationRequest(RequestModel):
    """How long the new code and the former key work."""

    code_minutes: CodeMinutes = CODE_MINUTES
    overlap_minutes: Annotated[int, Field(ge=0, le=OVERLAP_MINUTES_MAX)] = OVERLAP_MINUTES


class AgentBody(TypedDict):
    """What may be known of an agent after its key was shown."""

    agent_id: Uuid
    name: str
    labels: list[str]
    status: Literal["enrolled", "active", "revoked"]
    created_at: Time
    rotated_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    last_seen_at: Time | None


class AgentKeyMade(AgentBody):
    """An agent's key and the code that can be traded for another one, shown once."""

    key: str
    enrolment_code: str | None
    enrolment_code_expires_at: Time | None


class AgentPage(TypedDict):
    """The agents by name."""

    items: list[AgentBody]
    next_cursor: None


def agent_body(agent: AgentRow, host: HostRow | None = None) -> AgentBody:
    """Show an agent without its key."""
    status: Literal["enrolled", "active", "revoked"] = "enrolled"
    if agent.revoked_at is not None:
        status = "revoked"
    elif agent.last_used_at is not None:
        status = "active"
    return {
        "agent_id": agent.id,
        "name": agent.name,
        "labels": json.loads(agent.labels),
        "status": status,
        "created_at": rfc3339(agent.created_at),
        "rotated_at": optional_time(agent.rotated_at),
        "revoked_at": optional_time(agent.revoked_at),
        "last_used_at": optional_time(agent.last_used_at),
        "last_seen_at": optional_time(host.seen_at if host is not None else None),
    }


def new_agent_body(made: NewAgentKey) -> AgentKeyMade:
    """Show an agent with its new key and its code."""
    expires_at = made.agent.code_expires_at if made.code is not None else None
    return {
        **agent_body(made.agent),
        "key": made.key,
        "enrolment_code": made.code,
        "enrolment_code_expires_at": optional_time(expires_at),
    }
