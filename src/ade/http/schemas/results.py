"""The result of a job: the result envelope of the execution contract."""

import json
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from ade.app.times import rfc3339
from ade.domain.job import Status
from ade.domain.vocabulary import ResultStatus, contract_status
from ade.http.schemas.body import Time, Uuid, optional_time, stored_json
from ade.http.schemas.jobs import JobErrorBody, Usage, duration_ms, usage_body
from ade.store.rows import JobRow

SCHEMA_VERSION = "1.0"


class Artifact(TypedDict):
    """A file that a job left."""

    artifact_id: Uuid
    name: str
    kind: str
    format: str
    digest: str
    size_bytes: int
    uri: str
    content_type: str
    metadata: dict[str, Any]


class LogLine(TypedDict):
    """Something that happened around a job, for its owner."""

    level: Literal["info", "warning", "error"]
    message: str
    timestamp: NotRequired[Time | None]


class Resolution(TypedDict):
    """Who gave the result of a job in place of a computed one, when, and why."""

    by: str
    at: Time
    note: str | None


class Result(TypedDict):
    """How a job ended and what it left (execution contract, sections 8 and 9)."""

    schema_version: str
    job_id: Uuid
    job_type: str
    status: ResultStatus
    started_at: Time | None
    finished_at: Time
    duration_ms: int | None
    execution_key: str | None
    env_version: str | None
    resource_usage: Usage
    error: NotRequired[JobErrorBody | None]
    resolved: NotRequired[Resolution]
    outputs: dict[str, Any]
    artifacts: list[Artifact]
    logs: list[LogLine]


class SignedLink(TypedDict):
    """A link to an artifact's bytes that needs no key, until its time is over."""

    url: str
    expires_at: Time


def stored_result(text: str | None) -> dict[str, Any]:
    """Read a stored result; whatever is missing counts as empty."""
    stored = json.loads(text) if text else {}
    return stored if isinstance(stored, dict) else {"outputs": {"result_json": stored}}


def result_body(job: JobRow, text: str | None, env_version: str | None) -> Result:
    """Show how a job ended and what it left.

    `env_version` is what would run it now, for a job that never ran.
    """
    assert job.finished_at is not None, "only a job that has ended has a result"
    stored = stored_result(text)
    is_success = job.status == Status.SUCCEEDED
    outputs = stored.get("outputs")
    outputs = dict(outputs) if isinstance(outputs, dict) else {}
    if is_success:
        outputs.setdefault("result_json", None)
    outputs.setdefault("stdout", "")
    outputs.setdefault("stderr", "")
    result: Result = {
        "schema_version": SCHEMA_VERSION,
        "job_id": job.id,
        "job_type": job.kind,
        "status": ResultStatus(contract_status(Status(job.status))),
        "started_at": optional_time(job.started_at),
        "finished_at": rfc3339(job.finished_at),
        "duration_ms": duration_ms(job),
        "execution_key": job.execution_key,
        "env_version": stored.get("env_version") or env_version,
        "resource_usage": usage_body(job),
        "outputs": outputs,
        "artifacts": stored.get("artifacts") or [],
        "logs": stored.get("logs") or [],
    }
    if (resolved := stored.get("resolved")) is not None:
        result["resolved"] = {
            "by": resolved["by"],
            "at": rfc3339(resolved["at_us"]),
            "note": resolved.get("note"),
        }
    if not is_success:
        result["error"] = stored_json(job.error)
    return result


def output_text(text: str | None, stream: str) -> str:
    """Return what a result holds of a stream."""
    outputs = stored_result(text).get("outputs")
    output = outputs.get(stream) if isinstance(outputs, dict) else None
    return output if isinstance(output, str) else ""


def last_lines(text: str, tail: int | None) -> str:
    """Return a text, or so many of its last lines."""
    return text if tail is None else "".join(text.splitlines(keepends=True)[-tail:])
