"""What the worker contract shows of jobs: the fields of `status.json` and `job_info.json`."""

import json
from typing import Any

from ade.domain.units import MICROSECONDS
from ade.stages.agents.report import status_of
from ade.store.rows import AgentJob

# What a worker reports, by these names.
REPORTED = ("container_id", "container_name", "exit_code", "error", "details")


def status_body(found: AgentJob) -> dict[str, Any]:
    """Show the status of a job as `status.json` does."""
    job, facts = found.job, json.loads(found.known.facts)
    body: dict[str, Any] = {
        "job_id": job.id,
        "status": status_of(job, facts).value,
        "worker_id": job.lease_owner or facts.get("worker_id"),
        "stop_requested": job.stop_request is not None,
        "status_updated_at": found.known.reported_at / MICROSECONDS,
    }
    return body | {name: facts.get(name) for name in REPORTED}
