"""`build`: make the environment of one version of a configuration ready."""

from pydantic import BaseModel, ConfigDict

from ade.domain.build import KIND
from ade.domain.errors import AdeError, NotFound
from ade.kinds.kind import JobInputs, JobIO, Kind, Prepared


class FilesGone(AdeError):
    """The files of the version cannot be read any more."""

    code = "files_gone"


class BuildJobInputs(BaseModel):
    """Name the build and the version that it is made of."""

    model_config = ConfigDict(extra="forbid")

    build_id: str
    config_version_id: str


class BuildJob(Kind):
    """Install the requirements of a version and run its `on_activate` hooks.

    The worker installs; only the package itself is loaded in the sandbox
    (`ade.worker.build_runner`).
    """

    name = KIND
    inputs = BuildJobInputs
    entry = "ade_engine.entry.activate"
    env_version = "build@1"
    direct = False

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Lay out the version's files."""
        workspace_id, inputs = job.workspace_id, job.inputs
        try:
            package = await job_io.package(workspace_id, inputs["config_version_id"])
        except NotFound as error:
            raise FilesGone(error.detail) from None
        return Prepared(
            inputs={
                "build_id": inputs["build_id"],
                "attempt": job.attempt,
                "configuration_id": package.configuration_id,
                "sequence": package.sequence,
            },
            files=package.below("config"),
        )
