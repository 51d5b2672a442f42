"""Turn a request for a run into a submission: one version of a configuration on one document."""

import json
from collections.abc import Mapping
from typing import Any

from ade.app.build_requests import BuildRequests
from ade.app.catalogue import Catalogue, WantedRun
from ade.app.job_requests import NO_NETWORK, Caller, JobRequests
from ade.app.request_schemas import RunRequest
from ade.domain.errors import Forbidden, InvalidRequest
from ade.domain.job import Priority
from ade.domain.network import NetworkRule, asked_for_network
from ade.environments.environment import fingerprint_of
from ade.kinds.normalize import Normalize
from ade.settings import Settings
from ade.stages.submit.model import Submission
from ade.store.rows import JobRow

RUN_KIND = Normalize.name
_WORDS = {True: "enabled", False: "disabled"}


class RunRequests:
    """Turn requests for runs into submissions."""

    def __init__(
        self,
        catalogue: Catalogue,
        settings: Settings,
        jobs: JobRequests,
        builds: BuildRequests,
    ) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._jobs = jobs
        self._builds = builds

    async def of_configuration(
        self, caller: Caller, configuration_id: str, request: Mapping[str, Any]
    ) -> Submission:
        """Run a configuration: its active version, or the version that the request names."""
        names = ("input_document_id", "document_id")
        documents: set[str] = {request[name] for name in names if name in request}
        if len(documents) != 1:
            raise InvalidRequest("Give one document: input_document_id.")
        if "version" in request and "config_version_id" in request:
            raise InvalidRequest("Give the version by `version` or by `config_version_id`.")
        wanted = WantedRun(
            caller.workspace_id,
            documents.pop(),
            configuration_id.lower(),
            request.get("config_version_id"),
            request.get("version"),
        )
        return await self._run(caller, wanted, request)

    async def of_version(self, caller: Caller, request: RunRequest) -> Submission:
        """Run a version on a document: the short form of `POST .../jobs`."""
        if ("document_id" in request) == ("document_ids" in request):
            raise InvalidRequest("Give one document: document_id, or document_ids with one id.")
        named = "document_id" in request
        document_id = request["document_id"] if named else request["document_ids"][0]
        version_id = request["config_version_id"]
        wanted = WantedRun(caller.workspace_id, document_id, version_id=version_id)
        return await self._run(caller, wanted, request)

    async def repeat(self, caller: Caller, job: JobRow, payload: str) -> Submission:
        """Run again what a run ran; its build is made again if it failed or does not exist."""
        earlier = json.loads(payload)
        inputs = earlier["inputs"]
        request = {
            "limits": json.loads(job.limits),
            "priority": job.priority,
            "fail_on": inputs.get("fail_on"),
            "outputs": inputs.get("outputs"),
            "runtime_network_access": asked_for_network(earlier["environment"]),
        }
        version_id = inputs["config_version_id"]
        wanted = WantedRun(caller.workspace_id, inputs["document_id"], version_id=version_id)
        run = await self._run(caller, wanted, request, rebuild=True)
        return run._replace(rerun_of=job.id)

    async def _run(
        self,
        caller: Caller,
        wanted: WantedRun,
        request: Mapping[str, Any],
        *,
        rebuild: bool = False,
    ) -> Submission:
        network = request.get("runtime_network_access")
        if network and self._settings.runtime_network_access is NetworkRule.NEVER:
            raise Forbidden(NO_NETWORK)
        limits = self._jobs.limits(request.get("limits") or {})
        document, version, build = await self._catalogue.parts_of_run(
            wanted, caller.user_id, fingerprint_of
        )
        payload = {
            "job_type": RUN_KIND,
            "document_revision_id": version.digest,
            # Version and build are named when the run is accepted: they may not exist before.
            "inputs": {
                "document_id": document.id,
                "headers": self._settings.artifact_headers,
                **{name: request[name] for name in ("fail_on", "outputs") if request.get(name)},
            },
            "environment": {
                "network_access": None if network is None else _WORDS[network],
            },
        }
        return Submission(
            workspace_id=caller.workspace_id,
            kind=RUN_KIND,
            payload=json.dumps(payload),
            limits=limits,
            submitted_by=caller.user_id,
            priority=Priority(request.get("priority") or "normal"),
            dedupe=False,
            configuration_id=version.configuration_id,
            document_id=document.id,
            retries=self._jobs.retries(RUN_KIND),
            required=await self._builds.required(version, build, rebuild=rebuild),
        )
