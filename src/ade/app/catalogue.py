"""The catalogue as calls: documents, configurations, versions, builds and artifacts.

Each call is one read or one change of the session. A change that is refused leaves nothing. If the
connection breaks during a commit, the change is looked for, and reported as done if it is found.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ade.app.environment_records import EnvironmentRecords
from ade.domain.configuration import manifest_digest
from ade.domain.errors import Conflict, NotFound
from ade.store.reading import SqlReading
from ade.store.rows import (
    Activation,
    ArtifactRow,
    Build,
    BuildVersion,
    Configuration,
    Document,
    File,
    JobRow,
    RunParts,
    Version,
)
from ade.store.session import Session

# Which version a run uses, where the request names none by its number.
ACTIVE, DRAFT = "active", "draft"


class WantedRun(NamedTuple):
    """Name what a run is to be made of.

    The version is named by its id, by its number, as the active one or as the draft. Without any of
    them it is the active one, or the draft as long as none is active.
    """

    workspace_id: str
    document_id: str
    configuration_id: str | None = None
    version_id: str | None = None
    version: int | str | None = None


class Catalogue:
    """Read and change what jobs are made of and leave."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.environments = EnvironmentRecords(session)

    # --- documents --------------------------------------------------------------------------------

    async def add_document(
        self,
        workspace_id: str,
        name: str,
        digest: str,
        size_bytes: int,
        content_type: str | None,
        *,
        quota_bytes: int = 0,
    ) -> Document:
        """Add an uploaded file, or raise StorageFull if the workspace may store no more."""
        return await self._session.achange(
            lambda tx: tx.catalogue.add_document(
                workspace_id, name, digest, size_bytes, content_type, quota_bytes=quota_bytes
            ),
            lambda reading, new: _exists(
                lambda: reading.catalogue.find_document(workspace_id, new.id, deleted_too=True)
            ),
        )

    async def find_document(
        self, workspace_id: str, document_id: str, *, deleted_too: bool = False
    ) -> Document:
        """Find a document, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.catalogue.find_document(
                workspace_id, document_id, deleted_too=deleted_too
            )
        )

    async def list_documents(
        self, workspace_id: str, *, before: str | None, limit: int
    ) -> list[Document]:
        """List documents, newest first, that are older than one."""
        return await self._session.aread(
            lambda reading: reading.catalogue.list_documents(workspace_id, before, limit)
        )

    async def delete_document(self, workspace_id: str, document_id: str) -> None:
        """Hide a document; runs that have read it still name it."""
        await self._session.achange(
            lambda tx: tx.catalogue.delete_document(workspace_id, document_id),
            lambda reading, gone: (
                not _exists(lambda: reading.catalogue.find_document(workspace_id, gone.id))
            ),
        )

    # --- configurations and their drafts ----------------------------------------------------------

    async def add_configuration(
        self, workspace_id: str, name: str, files: list[File], *, quota_bytes: int = 0
    ) -> Configuration:
        """Add a configuration with a first draft."""
        return await self._session.achange(
            lambda tx: tx.catalogue.add_configuration(
                workspace_id, name, files, quota_bytes=quota_bytes
            ),
            lambda reading, new: _exists(
                lambda: reading.catalogue.find_configuration(workspace_id, new.id)
            ),
        )

    async def find_configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        """Find a configuration that was not deleted, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.catalogue.find_configuration(workspace_id, configuration_id)
        )

    async def list_configurations(
        self, workspace_id: str, *, before: str | None, limit: int
    ) -> list[Configuration]:
        """List configurations, newest first, that are older than one."""
        return await self._session.aread(
            lambda reading: reading.catalogue.list_configurations(workspace_id, before, limit)
        )

    async def delete_configuration(self, workspace_id: str, configuration_id: str) -> None:
        """Hide a configuration; its versions stay for the runs that name them."""
        await self._session.achange(
            lambda tx: tx.catalogue.delete_configuration(workspace_id, configuration_id),
            lambda reading, gone: (
                not _exists(lambda: reading.catalogue.find_configuration(workspace_id, gone.id))
            ),
        )

    async def draft(self, workspace_id: str, configuration_id: str) -> list[File]:
        """List the files of a draft in the order of their paths."""
        return await self._session.aread(
            lambda reading: _draft(reading, workspace_id, configuration_id)
        )

    async def find_file(self, workspace_id: str, configuration_id: str, path: str) -> File:
        """Find one file of a draft, or raise NotFound."""
        for file in await self.draft(workspace_id, configuration_id):
            if file.path == path:
                return file
        raise NotFound("There is no such file in the draft.")

    async def put_file(
        self,
        workspace_id: str,
        configuration_id: str,
        file: File,
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> bool:
        """Write one file of a draft; tell whether there was none of this path before."""
        return await self._session.achange(
            lambda tx: tx.catalogue.put_file(
                workspace_id, configuration_id, file, only_if=only_if, quota_bytes=quota_bytes
            ),
            lambda reading, _: file in _draft(reading, workspace_id, configuration_id),
        )

    async def delete_file(
        self, workspace_id: str, configuration_id: str, path: str, *, only_if: str | None = None
    ) -> None:
        """Take one file out of a draft, or raise NotFound."""

        def is_gone(reading: SqlReading, _: None) -> bool:
            draft = _draft(reading, workspace_id, configuration_id)
            return all(file.path != path for file in draft)

        await self._session.achange(
            lambda tx: tx.catalogue.delete_file(
                workspace_id, configuration_id, path, only_if=only_if
            ),
            is_gone,
        )

    async def replace_draft(
        self,
        workspace_id: str,
        configuration_id: str,
        files: list[File],
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> None:
        """Replace all files of a draft; `only_if` is the digest of the draft that was seen."""

        def is_replaced(reading: SqlReading, _: None) -> bool:
            draft = _draft(reading, workspace_id, configuration_id)
            return manifest_digest(draft) == manifest_digest(files)

        await self._session.achange(
            lambda tx: tx.catalogue.replace_draft(
                workspace_id, configuration_id, files, only_if=only_if, quota_bytes=quota_bytes
            ),
            is_replaced,
        )

    # --- versions ---------------------------------------------------------------------------------

    async def snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        """Make a version of the draft as it is; a draft that did not change is the same version."""
        version = await self._session.aread(
            lambda reading: reading.catalogue.version_of_draft(workspace_id, configuration_id, by)
        )
        if version.sequence:
            return version
        return await self._session.achange(
            lambda tx: tx.catalogue.ensure_version(version),
            lambda reading, new: _exists(
                lambda: reading.catalogue.find_version(workspace_id, new.id)
            ),
        )

    async def find_version(self, workspace_id: str, version_id: str) -> Version:
        """Find a version by its id, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.catalogue.find_version(workspace_id, version_id)
        )

    async def find_sequence(
        self, workspace_id: str, configuration_id: str, sequence: int
    ) -> Version:
        """Find a version by its number, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.catalogue.find_sequence(
                workspace_id, configuration_id, sequence
            )
        )

    async def list_versions(
        self, workspace_id: str, configuration_id: str, *, before: str | None, limit: int
    ) -> list[Version]:
        """List the versions of a configuration, newest first, that are older than one."""
        return await self._session.aread(
            lambda reading: reading.catalogue.list_versions(
                workspace_id, configuration_id, before, limit
            )
        )

    async def parts_of_run(
        self, wanted: WantedRun, by: str, fingerprint_of: Callable[[Version], str]
    ) -> RunParts:
        """Find the document of a run, the version that it uses, and that version's build.

        A draft that was changed since its last version is a version without a sequence: it is
        written when the run is accepted. Raises NotFound for what must exist. One read finds all of
        it, because every run that is submitted asks for it.
        """

        def look(reading: SqlReading) -> RunParts:
            version = _version_of_run(reading, wanted, by)
            document = reading.catalogue.find_document(wanted.workspace_id, wanted.document_id)
            build = reading.builds.find_of(version, fingerprint_of(version))
            return RunParts(document, version, build)

        return await self._session.aread(look)

    async def find_activation(
        self, workspace_id: str, configuration_id: str
    ) -> tuple[Activation, Version | None]:
        """Find which version of a configuration is active, and which one is to become it."""

        def look(reading: SqlReading) -> tuple[Activation, Version | None]:
            found = reading.builds.activation(workspace_id, configuration_id)
            if found is None or found.version_id is None:
                return found or Activation(workspace_id, configuration_id), None
            return found, reading.catalogue.find_version(workspace_id, found.version_id)

        return await self._session.aread(look)

    async def builds_of_runs(
        self, workspace_id: str, build_ids: Iterable[str | None]
    ) -> dict[str, tuple[Build, BuildVersion | None]]:
        """Find builds by their ids, each with the version that it was made of."""

        ids = list(build_ids)

        def look(reading: SqlReading) -> dict[str, tuple[Build, BuildVersion | None]]:
            versions = reading.builds.versions_of(workspace_id, ids)
            builds = reading.builds.find_some(workspace_id, ids)
            return {id_: (build, versions.get(id_)) for id_, build in builds.items()}

        return await self._session.aread(look)

    # --- artifacts and what is stored -------------------------------------------------------------

    async def find_artifact(self, artifact_id: str) -> ArtifactRow:
        """Find an artifact of any workspace, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.catalogue.find_artifact(artifact_id)
        )

    async def check_bytes(self, workspace_id: str, digest: str) -> None:
        """Raise NotFound unless a document or an artifact of the workspace has these bytes."""
        await self._session.aread(
            lambda reading: reading.catalogue.check_bytes(workspace_id, digest)
        )

    async def stored_bytes(self, workspace_id: str) -> int:
        """Count the bytes that a workspace stores."""
        return await self._session.aread(lambda reading: reading.usage.stored_bytes(workspace_id))

    async def digests_in_use(self) -> set[str]:
        """List every blob that a document, a draft, a version or a result refers to."""
        return await self._session.aread(lambda reading: reading.usage.digests_in_use())

    # --- builds -----------------------------------------------------------------------------------

    async def find_build(self, workspace_id: str, build_id: str) -> Build:
        """Find a build, or raise NotFound."""
        return await self._session.aread(
            lambda reading: reading.builds.find(workspace_id, build_id)
        )

    async def find_build_of_job(self, job: JobRow) -> Build:
        """Find the build that a run uses, or that a job of kind `build` makes."""
        if job.build_id is not None:
            return await self.find_build(job.workspace_id, job.build_id)
        return await self._session.aread(
            lambda reading: reading.builds.find_made_by(job.workspace_id, job.id)
        )

    async def find_build_of(self, version: Version, fingerprint: str) -> Build | None:
        """Find the build of a fingerprint, if there is one."""
        return await self._session.aread(
            lambda reading: reading.builds.find_of(version, fingerprint)
        )

    async def list_builds(
        self,
        workspace_id: str,
        *,
        configuration_id: str | None = None,
        status: str | None = None,
        before: str | None,
        limit: int,
    ) -> list[Build]:
        """List builds, newest first, that are older than one."""
        given = {"configuration_id": configuration_id, "status": status}
        filters = {name: value for name, value in given.items() if value is not None}
        return await self._session.aread(
            lambda reading: reading.builds.list_builds(workspace_id, filters, before, limit)
        )


def _draft(reading: SqlReading, workspace_id: str, configuration_id: str) -> list[File]:
    configuration = reading.catalogue.find_configuration(workspace_id, configuration_id)
    return reading.catalogue.draft(configuration)


def _exists(find: Callable[[], object]) -> bool:
    try:
        find()
    except NotFound:
        return False
    return True


def _version_of_run(reading: SqlReading, wanted: WantedRun, by: str) -> Version:
    workspace_id, catalogue = wanted.workspace_id, reading.catalogue
    if wanted.version_id is not None:
        version = catalogue.find_version(workspace_id, wanted.version_id)
        if wanted.configuration_id not in (None, version.configuration_id):
            raise NotFound("There is no such version of this configuration.")
        return version
    configuration = catalogue.find_configuration(workspace_id, str(wanted.configuration_id))
    if isinstance(wanted.version, int):
        return catalogue.find_sequence(workspace_id, configuration.id, wanted.version)
    if wanted.version != DRAFT:
        active = reading.builds.activation(workspace_id, configuration.id)
        if active is not None and active.version_id is not None:
            return catalogue.find_version(workspace_id, active.version_id)
        if wanted.version == ACTIVE:
            raise Conflict("The configuration has no active version; activate one, or run a draft.")
    return catalogue.version_of_draft(workspace_id, configuration.id, by)
