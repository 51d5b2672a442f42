"""The environments that agents fetch for runs, and those that builds on agents made.

The model. A run on an agent needs the packages that its build installed. The agent asks for their
archive, which the server makes if it has the environment on its disk and no archive yet. A build on
an agent sends the archive under its lease, before its end: an end that names an environment without
an archive is refused. An archive is for all workspaces, so the first one that is recorded counts.

    what an agent sends                        what happens
    -----------------------------------------  -------------------------------------------------
    a digest that is not that of lock,         422, nothing is recorded
    interpreter and installer
    an archive that this attempt did not send  409 artifact_missing
    an environment that has an archive         nothing; that one counts
"""

import asyncio

from ade.app.agent_inputs import AgentInputs, lease_of
from ade.app.agent_messages import (
    ArchiveMessage,
    FileMessage,
    KnownEnvironmentMessage,
    MadeEnvironmentMessage,
    RecipeMessage,
)
from ade.app.agent_uploads import AgentUploads
from ade.app.attempt_proofs import AttemptProofs
from ade.domain.build import KIND as BUILD
from ade.domain.errors import InvalidRequest, NotFound
from ade.environments.archive import Recipe
from ade.environments.shared import SharedEnvironments
from ade.store.rows import EnvironmentArchive, JobRow


class AgentEnvironments:
    """Give environments to agents, and take those that they made."""

    def __init__(
        self,
        shared: SharedEnvironments,
        inputs: AgentInputs,
        uploads: AgentUploads,
        proofs: AttemptProofs,
    ) -> None:
        self._shared = shared
        self._inputs = inputs
        self._uploads = uploads
        self._proofs = proofs

    async def archive(self, job: JobRow, build_id: str) -> ArchiveMessage:
        """Describe the archive of what a build installed for the job."""
        found = await self._inputs.environment(job, build_id)
        if found.environment is None:
            raise NotFound("This build installed nothing: it runs in ADE's own environment.")
        archive = await asyncio.shield(self._shared.share(found.environment))
        recipe = RecipeMessage(
            archive.environment,
            archive.lock,
            archive.interpreter,
            archive.installer,
            bool(archive.source_builds),
        )
        link = await self._proofs.link(lease_of(job), archive.archive)
        return ArchiveMessage(recipe, FileMessage(archive.archive, link))

    async def made(self, job: JobRow, message: MadeEnvironmentMessage) -> KnownEnvironmentMessage:
        """Record the archive of what a build on an agent installed; say whether there is one."""
        if job.kind != BUILD:
            raise InvalidRequest("Only builds make environments.")
        given, sent = message.recipe, message.archive
        recipe = Recipe(
            given.environment,
            given.lock,
            given.interpreter,
            given.installer,
            given.source_builds,
        )
        if not recipe.is_right:
            raise InvalidRequest("The environment's digest is not that of what it is made of.")
        if await self._shared.records.find(recipe.environment) is not None:
            return KnownEnvironmentMessage(known=True)
        if sent is None:
            return KnownEnvironmentMessage(known=False)
        await self._uploads.check_sent(job, sent.digest, sent.size_bytes, sent.receipt)
        await self._shared.records.add(
            EnvironmentArchive(
                environment=recipe.environment,
                archive=sent.digest,
                archive_bytes=sent.size_bytes,
                installed_bytes=sent.installed_bytes,
                interpreter=recipe.interpreter,
                installer=recipe.installer,
                source_builds=int(recipe.source_builds),
                lock=recipe.lock,
                created_at=0,
                used_at=0,
            )
        )
        return KnownEnvironmentMessage(known=True)
