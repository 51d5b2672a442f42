"""What jobs are made of and leave: documents, versions of configurations, builds, artifacts.

Contents are blobs (`ade.artifacts`); nothing here holds a byte of them.
"""

from ade.store.library.artifacts import Artifacts
from ade.store.library.builds import AGAIN, BUILDS_TOPIC, Build, BuildHeld
from ade.store.library.configurations import Configuration
from ade.store.library.documents import Document
from ade.store.library.drafts import ABSENT, DRAFT_BYTES_MAX, FILES_MAX, File, manifest_digest
from ade.store.library.run_parts import PartsOfRuns, RunParts
from ade.store.library.versions import Version

__all__ = [
    "ABSENT",
    "AGAIN",
    "BUILDS_TOPIC",
    "DRAFT_BYTES_MAX",
    "FILES_MAX",
    "Build",
    "BuildHeld",
    "Configuration",
    "Document",
    "File",
    "Library",
    "RunParts",
    "Version",
    "manifest_digest",
]


class Library(PartsOfRuns, Artifacts):
    """Read and change documents, configurations, versions and builds; find artifacts."""

    async def digests_in_use(self) -> set[str]:
        """Name every blob that a document, a draft, a version or a result refers to."""
        return await self._run(self._digests_in_use, write=False)

    def _digests_in_use(self) -> set[str]:
        return self._document_digests() | self._file_digests() | self._artifact_digests()
