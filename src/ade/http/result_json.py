"""What a job came to: the result envelope of the execution contract (seed 003, 8 and 9)."""

import json
from typing import Any

from ade.app.times import rfc3339
from ade.domain.job import Status
from ade.domain.vocabulary import contract_status
from ade.store.rows import JobRow

SCHEMA_VERSION = "1.0"


def stored_result(body: str | None) -> dict[str, Any]:
    """Read a stored result; whatever is missing counts as empty."""
    found = json.loads(body) if body else {}
    return found if isinstance(found, dict) else {"outputs": {"result_json": found}}


def result_envelope(job: JobRow, body: str | None, env_version: str | None) -> dict[str, Any]:
    """Put together how a job ended and what it left.

    `env_version` is what would run it now, for a job that never ran.
    """
    stored = stored_result(body)
    usage = json.loads(job.usage) if job.usage else {}
    started, finished = job.started_at, job.finished_at
    ran = None if started is None or finished is None else (finished - started) // 1000
    envelope: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "job_id": job.id,
        "job_type": job.kind,
        "status": contract_status(Status(job.status)),
        "started_at": None if started is None else rfc3339(started),
        "finished_at": None if finished is None else rfc3339(finished),
        "duration_ms": ran,
        "execution_key": job.execution_key,
        "env_version": stored.get("env_version") or env_version,
        "resource_usage": {"cpu_ms": 0, "memory_mb_peak": 0, **usage},
    }
    if job.status != Status.SUCCEEDED:
        envelope["error"] = json.loads(job.error) if job.error else None
    outputs = stored.get("outputs")
    outputs = dict(outputs) if isinstance(outputs, dict) else {}
    if job.status == Status.SUCCEEDED:
        outputs.setdefault("result_json", None)
    outputs.setdefault("stdout", "")
    outputs.setdefault("stderr", "")
    envelope["outputs"] = outputs
    envelope["artifacts"] = stored.get("artifacts") or []
    envelope["logs"] = stored.get("logs") or []
    return envelope


def output_text(body: str | None, stream: str, tail: int | None) -> str:
    """Return what a job wrote to a stream, or its last lines."""
    outputs = stored_result(body).get("outputs")
    text = outputs.get(stream) if isinstance(outputs, dict) else None
    if not isinstance(text, str):
        return ""
    return text if tail is None else "".join(text.splitlines(keepends=True)[-tail:])
