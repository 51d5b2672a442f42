"""Say what a version needs before it can run, and turn an activation into a submission.

The build itself is found or made when the submission is accepted (`ade.stages.builds`).
"""

import asyncio

from ade.app.catalogue import Catalogue
from ade.app.job_requests import Caller
from ade.domain.build import KIND
from ade.domain.errors import NotFound
from ade.domain.limits import Limits
from ade.environments.environment import LOST, fingerprint_of, is_there
from ade.environments.failure import BuildFailed, environment_gone, error_json
from ade.environments.requirements import BYTES_MAX, FILE, read_requirements
from ade.settings import Settings
from ade.stages.builds import EnsuredBuild, RequiredBuild
from ade.stages.submit.model import Accepted, Submission
from ade.storage import Blobs
from ade.store.rows import Build, File, Version

HOOK = "hooks/on_activate"
KNOWN_MAX = 1024


class BuildRequests:
    """Turn versions into the builds that they require."""

    def __init__(self, catalogue: Catalogue, blobs: Blobs, settings: Settings) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._limits = Limits(
            timeout_ms=int(settings.build_timeout_seconds * 1000),
            cpu_ms=settings.worker_cpu_seconds * 1000,
            memory_mb=settings.worker_mem_mb,
            max_output_kb=settings.max_output_kb,
            max_artifacts=0,
        )

        self._blobs = blobs
        # Whether the build of a version has work, by the version's digest.
        self._known_work: dict[str, bool] = {}

    async def required(
        self,
        version: Version,
        known: Build | None = None,
        *,
        rebuild: bool = False,
        activate: bool = False,
    ) -> RequiredBuild:
        """Describe the build of a version; `known` is that build as it was just read.

        A ready build whose packages are neither on this disk nor in an archive is given up first.
        """
        environment = known.environment if known is not None else None
        if environment is not None and not is_there(environment, self._settings):
            await self._retire_if_lost(environment)
        return RequiredBuild(
            version=version,
            fingerprint=fingerprint_of(version),
            limits=self._limits,
            retries=self._settings.retry_max_attempts - 1,
            has_work=await self._has_work(version),
            rebuild=rebuild,
            activate=activate,
        )

    async def _retire_if_lost(self, environment: str) -> None:
        environments = self._catalogue.environments
        if await environments.find(environment) is None:
            gone = error_json(environment_gone(LOST))
            await environments.retire(environment, gone, even_if_needed=True)

    async def activation(self, caller: Caller, version: Version) -> Submission:
        """Ask that a version become the active one as soon as its build is ready."""
        known = await self._catalogue.find_build_of(version, fingerprint_of(version))
        return Submission(
            workspace_id=caller.workspace_id,
            kind=KIND,
            payload="{}",
            limits=self._limits,
            submitted_by=caller.user_id,
            dedupe=False,
            configuration_id=version.configuration_id,
            required=await self.required(version, known, activate=True),
        )

    async def with_build(self, accepted: Accepted) -> Accepted:
        """Complete a job that was accepted earlier with its version and its build."""
        if accepted.ensured is not None:
            return accepted
        build = await self._catalogue.find_build_of_job(accepted.job)
        version = await self._catalogue.find_version(build.workspace_id, str(build.version_id))
        return accepted._replace(ensured=EnsuredBuild(version, build))

    async def _has_work(self, version: Version) -> bool:
        """Tell whether there are packages to install or hooks to run; each version is read once."""
        known = self._known_work.get(version.digest)
        if known is None:
            known = await asyncio.to_thread(self._find_work, version.files)
            if len(self._known_work) >= KNOWN_MAX:
                self._known_work.clear()
            self._known_work[version.digest] = known
        return known

    def _find_work(self, files: list[File]) -> bool:
        if any(file.path.startswith(HOOK) for file in files):
            return True
        requirements = next((file for file in files if file.path == FILE), None)
        if requirements is None or requirements.size_bytes > BYTES_MAX:
            return requirements is not None
        try:
            return bool(read_requirements(self._blobs.read(requirements.digest)))
        except (BuildFailed, NotFound):
            return True  # the build reports what is wrong with the file
