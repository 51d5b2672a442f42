"""Make runs: a configuration as it is now, on one document."""

import json
from collections.abc import Mapping
from typing import Any

from ade.domain.errors import Forbidden, InvalidRequest, SafeMode
from ade.domain.job import Priority, Status
from ade.domain.vocabulary import run_status
from ade.environments.environment import ensure_build, fingerprint_of
from ade.http.auth import Grant
from ade.http.contract import RunRequest
from ade.http.door import Door
from ade.http.job_json import job_path
from ade.http.times import rfc3339
from ade.kinds.normalize import Normalize
from ade.stages.submit import SAFE_MODE_DETAIL, Submission
from ade.store.rows import Build, JobRow

KIND = Normalize.name


class Runs:
    """Turn what someone asks for into a submission, and jobs into runs as their door shows them."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def of_draft(
        self, grant: Grant, configuration_id: str, asked: Mapping[str, Any]
    ) -> tuple[Submission, Build]:
        """Run a configuration's draft as it is now, or the version that is named."""
        self._refuse_in_safe_mode()
        version_id = asked.get("config_version_id")
        return await self._submission(
            grant, asked["input_document_id"], asked, version_id, configuration_id
        )

    async def of_version(self, grant: Grant, asked: RunRequest) -> tuple[Submission, Build]:
        """Run a version on a document: the short form of `POST .../jobs`."""
        if ("document_id" in asked) == ("document_ids" in asked):
            raise InvalidRequest("Give one document: document_id, or document_ids with one id.")
        document_id = asked["document_id"] if "document_id" in asked else asked["document_ids"][0]
        self._refuse_in_safe_mode()
        return await self._submission(grant, document_id, asked, asked["config_version_id"])

    async def again(self, grant: Grant, job: JobRow, payload: str) -> tuple[Submission, Build]:
        """Run again what a run ran; its build is made again if it is not there any more."""
        self._refuse_in_safe_mode()
        earlier = json.loads(payload)
        inputs = earlier["inputs"]
        asked = {
            "limits": json.loads(job.limits),
            "priority": job.priority,
            "runtime_network_access": earlier["environment"]["network_access"] == "enabled",
        }
        submission, build = await self._submission(
            grant, inputs["document_id"], asked, inputs["config_version_id"]
        )
        return submission._replace(rerun_of=job.id), build

    def _refuse_in_safe_mode(self) -> None:
        """Refuse before anything is written: a build would be, before the kernel refuses."""
        if self._door.safe_mode:
            raise SafeMode(SAFE_MODE_DETAIL)

    async def _submission(
        self,
        grant: Grant,
        document_id: str,
        asked: Mapping[str, Any],
        version_id: str | None,
        configuration_id: str | None = None,
    ) -> tuple[Submission, Build]:
        door, settings, workspace_id = self._door, self._door.settings, grant.workspace.id
        network = asked.get("runtime_network_access")
        if network and not settings.runtime_network_access:
            raise Forbidden("Jobs get no network here: ADE_RUNTIME_NETWORK_ACCESS is off.")
        limits = door.intake.settled(asked.get("limits") or {})
        document, version, known = await door.library.parts_of_run(
            workspace_id,
            document_id,
            configuration_id=configuration_id,
            version_id=version_id,
            fingerprint_of=fingerprint_of,
        )
        if version is None:
            draft = str(configuration_id)
            version = await door.library.snapshot(workspace_id, draft, grant.user_id)
        build = await ensure_build(door.library, door.kernel, version, settings, known=known)
        payload = {
            "job_type": KIND,
            "document_revision_id": version.digest,
            "inputs": {
                "config_version_id": version.id,
                "document_id": document.id,
                "build_id": build.id,
                "headers": settings.artifact_headers,
            },
            # A run has network only if it says so, whatever the default for cells is.
            "environment": {"network_access": "enabled" if network else "disabled"},
        }
        submission = Submission(
            workspace_id=workspace_id,
            kind=KIND,
            payload=json.dumps(payload),
            limits=limits,
            submitted_by=grant.user_id,
            priority=Priority(asked.get("priority") or "normal"),
            dedupe=False,
            configuration_id=version.configuration_id,
            document_id=document.id,
            build_id=build.id,
            retries=door.intake.retries_of(KIND),
        )
        return submission, build


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
            "self": f"/api/v1/workspaces/{slug}/runs/{job.id}",
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
