"""Find what runs work on: documents, the files of versions, the packages of builds."""

from dataclasses import dataclass
from pathlib import Path

from ade.artifacts import Blobs
from ade.domain.errors import NotFound, Unavailable
from ade.store.library import Library


@dataclass(frozen=True, slots=True)
class LibraryWorkroom:
    """Look things up in the library, and their bytes among the blobs."""

    library: Library
    blobs: Blobs

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name; also one that was deleted since."""
        found = await self.library.find_document(workspace_id, document_id, deleted_too=True)
        return self._bytes(found.digest, f"document {found.name[:100]!r}"), found.name

    async def package(self, workspace_id: str, version_id: str) -> dict[str, Path]:
        """Return where the bytes of each file of a configuration's version are."""
        version = await self.library.find_version(workspace_id, version_id)
        return {file.path: self._bytes(file.digest, file.path) for file in version.files}

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        build = await self.library.find_build(workspace_id, build_id)
        if build.status != "ready":
            raise Unavailable(f"The run's build is {build.status}.")
        return build.environment

    def _bytes(self, digest: str, what: str) -> Path:
        path = self.blobs.path(digest)
        if not path.exists():
            raise NotFound(f"The bytes of {what} are not in the storage any more.")
        return path
