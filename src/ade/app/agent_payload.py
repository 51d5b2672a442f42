"""What an agent gets for a job: how to run its container, in the words of the worker contract."""

import json
import re
import shlex
from typing import Any

from pydantic import ValidationError

from ade.app.validation import invalid_body
from ade.kinds.container import ContainerInputs, command_of
from ade.store.rows import AgentJobRow, Claim

# An agent with this capability gets all that a container job can ask for, under `container`.
CONTAINER_SPEC = "container_spec_v1"
NAME_CHARS_MAX = 60


def job_payload(claim: Claim, known: AgentJobRow, *, whole: bool = False) -> dict[str, Any]:
    """Describe a job for the agent that has claimed it, or raise InvalidRequest.

    With `whole`, what the contract has no words for is added: resources, network, time limit.
    """
    try:
        inputs = ContainerInputs.model_validate(json.loads(claim.payload).get("inputs"))
    except ValidationError as error:
        raise invalid_body(error, within=("inputs",)) from None
    inputs.command = command_of(inputs.command, claim.id)
    payload: dict[str, Any] = {
        "job_id": claim.id,
        "job_name": known.job_name or claim.id,
        "config_path": inputs.config_path,
        "preferred_host": inputs.preferred_host,
        "image": inputs.image,
        "command": _as_text(inputs.command),
        "container_name": inputs.container_name or _container_name(claim, known.job_name),
        "volumes": [volume.model_dump() for volume in inputs.volumes],
        "env": inputs.env,
    }
    if whole:
        payload["workspace_id"] = claim.workspace_id
        payload["limits"] = json.loads(claim.limits)
        payload["container"] = inputs.model_dump(mode="json")
    return payload


def _as_text(command: str | list[str]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _container_name(claim: Claim, job_name: str) -> str:
    """Name a container so that no other attempt of any job has the same name."""
    words = re.sub(r"[^a-z0-9]+", "_", job_name.lower()).strip("_")[:NAME_CHARS_MAX]
    again = f"_{claim.fence}" if claim.fence > 1 else ""
    return "_".join(word for word in ("ade_job", words, claim.id) if word) + again
