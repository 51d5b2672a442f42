"""What the worker contract shows of jobs: the fields of `status.json`, `job_info.json` and lists.

The environment and the command of a container are in none of them: they may hold secrets.
"""

import json
from dataclasses import dataclass
from typing import Any

from ade.domain.agent_pool import AgentPool
from ade.domain.job import WAITING, Status
from ade.domain.units import MICROSECONDS
from ade.stages.agents.report import status_of
from ade.store.port import Reading
from ade.store.rows import AgentJob, JobRef

# What a worker reports, by these names.
REPORTED = ("container_id", "container_name", "exit_code", "error", "details")
_WAITS = frozenset(status.value for status in WAITING)


@dataclass(frozen=True, slots=True)
class ShownJob:
    """Hold a job of an agent with all that the contract shows of it."""

    found: AgentJob
    inputs: dict[str, Any]
    pool: AgentPool

    @property
    def waits(self) -> bool:
        """Tell whether the job has an entry in the queue."""
        return self.found.job.status in _WAITS


def shown_job(reading: Reading, found: AgentJob) -> ShownJob:
    """Read what is shown of a job besides its state."""
    payload = reading.read_payload(JobRef(found.job.workspace_id, found.job.id))
    inputs = json.loads(payload)["inputs"] if payload is not None else {}
    return ShownJob(found, inputs, pool_of(reading, found))


def pool_of(reading: Reading, found: AgentJob) -> AgentPool:
    """Return what a job asks of the agent that runs it."""
    return reading.agent_jobs.pool(found.known.pool) or AgentPool()


def name_of(found: AgentJob) -> str:
    """Return what people call a job; one that was given no name is called by its id."""
    return found.known.job_name or found.job.id


def status_body(found: AgentJob) -> dict[str, Any]:
    """Show the status of a job as `status.json` does."""
    job, facts = found.job, json.loads(found.known.facts)
    body: dict[str, Any] = {
        "job_id": job.id,
        "status": status_of(job, facts).value,
        "worker_id": job.lease_owner or facts.get("worker_id"),
        "stop_requested": job.stop_request is not None,
        "status_updated_at": _updated_at(found) / MICROSECONDS,
    }
    return body | {name: facts.get(name) for name in REPORTED} | _failure(found, facts)


def _failure(found: AgentJob, facts: dict[str, Any]) -> dict[str, Any]:
    """Say why a job failed where its worker did not."""
    if found.job.status not in (Status.FAILED, Status.TIMED_OUT) or facts.get("error"):
        return {}
    recorded = json.loads(found.job.error) if found.job.error else {}
    return {"error": recorded.get("message")}


def _updated_at(found: AgentJob) -> int:
    """Return when the status changed last, or was last confirmed."""
    job = found.job
    return max(found.known.reported_at, job.started_at or 0, job.finished_at or 0)


def job_info_body(shown: ShownJob) -> dict[str, Any]:
    """Show what a job is, as `job_info.json` does."""
    found, inputs = shown.found, shown.inputs
    facts = json.loads(found.known.facts)
    return {
        "job_id": found.job.id,
        "job_name": name_of(found),
        "config_path": inputs.get("config_path"),
        "target_host": shown.pool.host,
        "image": inputs.get("image"),
        "experiment_name": inputs.get("experiment_name"),
        "run_name": inputs.get("run_name"),
        "submitted_at": found.job.submitted_at / MICROSECONDS,
        **{name: facts.get(name) for name in REPORTED},
        "container_name": facts.get("container_name") or inputs.get("container_name"),
        **_failure(found, facts),
    }


def listed_body(found: AgentJob, pool: AgentPool) -> dict[str, Any]:
    """Show a job in the list of all jobs."""
    return {
        **status_body(found),
        "job_name": name_of(found),
        "target_host": pool.host,
        "submitted_at": found.job.submitted_at / MICROSECONDS,
    }


def queue_entry(job_id: str, pool: AgentPool) -> dict[str, Any]:
    """Show a job that waits, as its file in `queue/` does."""
    return {
        "job_id": job_id,
        "preferred_host": pool.host,
        "require_host": pool.require_host,
    }
