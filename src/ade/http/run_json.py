"""A run as the API shows it."""

import json
from typing import Any

from ade.app.times import rfc3339
from ade.domain.job import Status
from ade.domain.vocabulary import run_status
from ade.http.job_json import job_path
from ade.store.rows import Build, JobRow


def run_path(slug: str, run_id: str) -> str:
    """Return the path of a run."""
    return f"/api/v1/workspaces/{slug}/runs/{run_id}"


def run_json(job: JobRow, slug: str, build: Build | None) -> dict[str, Any]:
    """Show a job as a run."""
    path = job_path(slug, job.id)
    error = json.loads(job.error) if job.error else None
    return {
        "run_id": job.id,
        "status": run_status(Status(job.status)),
        "configuration_id": job.configuration_id,
        "build_id": job.build_id,
        "build": None if build is None else build_json(build),
        "input_document_id": job.document_id,
        "rerun_of": job.rerun_of,
        "created_at": rfc3339(job.submitted_at),
        "started_at": None if job.started_at is None else rfc3339(job.started_at),
        "finished_at": None if job.finished_at is None else rfc3339(job.finished_at),
        "progress": json.loads(job.progress) if job.progress else None,
        "error": error,
        "links": {
            "self": run_path(slug, job.id),
            "job": path,
            "events": f"{path}/events",
            "logs": f"{path}/logs",
            "artifact": f"{path}/artifact",
            "output": f"{path}/output",
        },
    }


def build_json(build: Build) -> dict[str, Any]:
    """Show what a run says of its build."""
    return {
        "build_id": build.id,
        "status": build.status,
        "error": json.loads(build.error) if build.error else None,
    }
