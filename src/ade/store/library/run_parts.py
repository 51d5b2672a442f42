"""What a run is made of, in one look: a thousand runs at once ask for nothing else."""

from collections.abc import Callable
from typing import NamedTuple

from ade.domain.errors import NotFound
from ade.store.library.builds import Build, Builds
from ade.store.library.documents import Document, Documents
from ade.store.library.versions import Version, Versions


class RunParts(NamedTuple):
    """Hold what is there of a run's parts; what is missing has to be made."""

    document: Document
    version: Version | None
    build: Build | None


class PartsOfRuns(Documents, Versions, Builds):
    """Look up what runs are made of."""

    async def parts_of_run(
        self,
        workspace_id: str,
        document_id: str,
        *,
        configuration_id: str | None = None,
        version_id: str | None = None,
        fingerprint_of: Callable[[Version], str],
    ) -> RunParts:
        """Find a document, the version that is named or that the draft is, and its build.

        Without `version_id` it is that of the configuration's draft; there is none if the draft
        was changed since. Raises NotFound for what must be there.
        """

        def look() -> RunParts:
            if version_id is None:
                version = self._same(workspace_id, str(configuration_id))
            else:
                version = self._find_version(workspace_id, version_id)
                _refuse_another(version, configuration_id and configuration_id.lower())
            document = self._document(workspace_id, document_id)
            build = version and self._build_of(version, fingerprint_of(version))
            return RunParts(document, version, build)

        return await self._run(look, write=False)


def _refuse_another(version: Version, configuration_id: str | None) -> None:
    if configuration_id not in (None, version.configuration_id):
        raise NotFound("There is no such version of this configuration.")
