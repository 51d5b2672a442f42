"""Turn a request for a run into a submission: one version of a configuration on one document."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ade.app.catalogue import Catalogue
from ade.app.job_requests import NETWORK_IS_OFF, Caller, JobRequests
from ade.app.request_schemas import RunRequest
from ade.domain.errors import SAFE_MODE_DETAIL, Forbidden, InvalidRequest, SafeMode
from ade.domain.job import Priority
from ade.environments.environment import ensure_build, fingerprint_of
from ade.kernel import Kernel
from ade.kinds.normalize import Normalize
from ade.settings import Settings
from ade.stages.submit.model import Submission
from ade.store.rows import Build, Document, JobRow, Version

RUN_KIND = Normalize.name


class RunSubmission(NamedTuple):
    """Hold a run to submit, and the build that it will run in."""

    submission: Submission
    build: Build


class _Parts(NamedTuple):
    """Hold what a run is made of."""

    document: Document
    version: Version
    build: Build


class RunRequests:
    """Turn requests for runs into submissions."""

    def __init__(
        self, kernel: Kernel, catalogue: Catalogue, settings: Settings, jobs: JobRequests
    ) -> None:
        self._kernel = kernel
        self._catalogue = catalogue
        self._settings = settings
        self._jobs = jobs

    async def of_configuration(
        self, caller: Caller, configuration_id: str, request: Mapping[str, Any]
    ) -> RunSubmission:
        """Run a configuration's draft as it is now, or the version that the request names."""
        self._check_safe_mode()
        return await self._run(
            caller,
            request["input_document_id"],
            request,
            configuration_id=configuration_id,
            version_id=request.get("config_version_id"),
        )

    async def of_version(self, caller: Caller, request: RunRequest) -> RunSubmission:
        """Run a version on a document: the short form of `POST .../jobs`."""
        if ("document_id" in request) == ("document_ids" in request):
            raise InvalidRequest("Give one document: document_id, or document_ids with one id.")
        named = "document_id" in request
        document_id = request["document_id"] if named else request["document_ids"][0]
        self._check_safe_mode()
        version_id = request["config_version_id"]
        return await self._run(caller, document_id, request, version_id=version_id)

    async def repeat(self, caller: Caller, job: JobRow, payload: str) -> RunSubmission:
        """Run again what a run ran; its build is made again if it does not exist any more."""
        self._check_safe_mode()
        earlier = json.loads(payload)
        inputs = earlier["inputs"]
        request = {
            "limits": json.loads(job.limits),
            "priority": job.priority,
            "runtime_network_access": earlier["environment"]["network_access"] == "enabled",
        }
        run = await self._run(
            caller, inputs["document_id"], request, version_id=inputs["config_version_id"]
        )
        return run._replace(submission=run.submission._replace(rerun_of=job.id))

    def _check_safe_mode(self) -> None:
        """Refuse before a version or a build is written: the kernel would refuse only after."""
        if self._kernel.settings.safe_mode:
            raise SafeMode(SAFE_MODE_DETAIL)

    async def _run(
        self,
        caller: Caller,
        document_id: str,
        request: Mapping[str, Any],
        *,
        version_id: str | None,
        configuration_id: str | None = None,
    ) -> RunSubmission:
        network = request.get("runtime_network_access")
        if network and not self._settings.runtime_network_access:
            raise Forbidden(NETWORK_IS_OFF)
        limits = self._jobs.limits(request.get("limits") or {})
        document, version, build = await self._parts(
            caller, document_id, version_id=version_id, configuration_id=configuration_id
        )
        payload = {
            "job_type": RUN_KIND,
            "document_revision_id": version.digest,
            "inputs": {
                "config_version_id": version.id,
                "document_id": document.id,
                "build_id": build.id,
                "headers": self._settings.artifact_headers,
            },
            # A run has network only if its request says so, whatever the default for cells is.
            "environment": {"network_access": "enabled" if network else "disabled"},
        }
        submission = Submission(
            workspace_id=caller.workspace_id,
            kind=RUN_KIND,
            payload=json.dumps(payload),
            limits=limits,
            submitted_by=caller.user_id,
            priority=Priority(request.get("priority") or "normal"),
            dedupe=False,
            configuration_id=version.configuration_id,
            document_id=document.id,
            build_id=build.id,
            retries=self._jobs.retries(RUN_KIND),
        )
        return RunSubmission(submission, build)

    async def _parts(
        self,
        caller: Caller,
        document_id: str,
        *,
        version_id: str | None,
        configuration_id: str | None,
    ) -> _Parts:
        """Decide which version and which build a run uses, and write those that do not exist yet.

        This happens before the run is admitted, so a refused run may leave a version and a build.
        """
        document, version, known = await self._catalogue.parts_of_run(
            caller.workspace_id,
            document_id,
            configuration_id=configuration_id,
            version_id=version_id,
            fingerprint_of=fingerprint_of,
        )
        if version is None:
            version = await self._catalogue.snapshot(
                caller.workspace_id, str(configuration_id), caller.user_id
            )
        build = await ensure_build(
            self._catalogue, self._kernel, version, self._settings, known=known
        )
        return _Parts(document, version, build)
