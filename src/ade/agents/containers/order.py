"""The order to run a container: what `next-job` answers, checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ade.domain.ids import is_uuid
from ade.kinds.container import ContainerInputs

TOKEN_CHARS_MAX = 200
# The words of the worker contract that say how a container runs; the rest is about the job.
_OF_CONTRACT = ("image", "command", "container_name", "volumes", "env", "config_path")
# Why a container could not be run, in `details.code` of a report.
NOT_STARTED = "CONTAINER_NOT_STARTED"
IMAGE_UNAVAILABLE = "IMAGE_UNAVAILABLE"
OUT_OF_MEMORY = "CONTAINER_OUT_OF_MEMORY"
AGENT_RESTARTED = "AGENT_RESTARTED"
TIMED_OUT = "TIMED_OUT"


class ContainerError(Exception):
    """A container cannot be run; `code` says what kind of reason the message is."""

    def __init__(self, message: str, code: str = NOT_STARTED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class Order:
    """Hold what one attempt of a job runs, and how it proves itself to the server."""

    job_id: str
    attempt: int
    token: str = field(repr=False)
    inputs: ContainerInputs = field(repr=False)  # it may hold secrets
    container_name: str
    timeout_seconds: float | None = None

    def proof(self) -> dict[str, Any]:
        """Return what a report of this attempt echoes."""
        return {
            "job_id": self.job_id,
            "attempt_number": self.attempt,
            "attempt_token": self.token,
        }


def read_order(payload: Mapping[str, Any]) -> Order:
    """Read what `next-job` answered, or raise ContainerError.

    `container` holds all that a job can ask for. A server that does not send it sends the words of
    the contract.
    """
    job_id, attempt, token = identity_of(payload)
    whole = payload.get("container")
    asked = {name: payload[name] for name in _OF_CONTRACT if payload.get(name) is not None}
    try:
        inputs = ContainerInputs.model_validate(whole if whole is not None else asked)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ContainerError(f"The order cannot be read: {place}: {first['msg']}.") from None
    name = payload.get("container_name") or inputs.container_name
    if not isinstance(name, str) or not name:
        name = f"ade_job_{job_id}_{attempt}"
    return Order(job_id, attempt, token, inputs, name, _timeout_seconds(payload))


def identity_of(payload: Mapping[str, Any]) -> tuple[str, int, str]:
    """Read which attempt an order is, or raise ContainerError."""
    job_id, attempt = payload.get("job_id"), payload.get("attempt_number")
    token = payload.get("attempt_token")
    if (
        not (isinstance(job_id, str) and is_uuid(job_id))
        or not (isinstance(attempt, int) and 0 < attempt < 2**31)
        or not (isinstance(token, str) and 0 < len(token) <= TOKEN_CHARS_MAX)
    ):
        raise ContainerError(
            "The order names no attempt: the server must know attempt_fencing_v1. Update it."
        )
    return job_id.lower(), attempt, token


def _timeout_seconds(payload: Mapping[str, Any]) -> float | None:
    limits = payload.get("limits")
    if isinstance(limits, str):
        limits = json.loads(limits)
    timeout_ms = limits.get("timeout_ms") if isinstance(limits, Mapping) else None
    return timeout_ms / 1000 if isinstance(timeout_ms, int | float) and timeout_ms > 0 else None
