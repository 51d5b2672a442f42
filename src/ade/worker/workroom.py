"""Find what jobs work on, and keep what they leave: documents, packages, artifacts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ade.app.catalogue import Catalogue
from ade.artifacts import Blobs
from ade.artifacts.describing import described
from ade.clock import Clock, SystemClock, new_id
from ade.domain.errors import NotFound, StorageFull, Unavailable
from ade.domain.outcome import Artifact, OutputFile

MIB = 1024 * 1024
NO_LIBRARY = "This worker has no library of documents, configurations and artifacts."


class NoLibrary:
    """Stand where a worker has no library: what needs one cannot be done there."""

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Raise that there are no documents."""
        raise Unavailable(NO_LIBRARY)

    async def package(self, workspace_id: str, version_id: str) -> dict[str, Path]:
        """Raise that there are no configurations."""
        raise Unavailable(NO_LIBRARY)

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Raise that there are no stored bytes."""
        raise Unavailable(NO_LIBRARY)

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Raise that nothing can be kept."""
        raise Unavailable(NO_LIBRARY)

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Raise that there are no builds."""
        raise Unavailable(NO_LIBRARY)


@dataclass(frozen=True, slots=True)
class LibraryWorkroom:
    """Look things up in the library, and their bytes among the blobs."""

    library: Catalogue
    blobs: Blobs
    quota_bytes: int = 0
    clock: Clock = field(default_factory=SystemClock)

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name; also one that was deleted since."""
        found = await self.library.find_document(workspace_id, document_id, deleted_too=True)
        (path,) = await self._places({f"document {found.name[:100]!r}": found.digest})
        return path, found.name

    async def package(self, workspace_id: str, version_id: str) -> dict[str, Path]:
        """Return where the bytes of each file of a configuration's version are."""
        version = await self.library.find_version(workspace_id, version_id)
        digests = {file.path: file.digest for file in version.files}
        return dict(zip(digests, await self._places(digests), strict=True))

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Return where the bytes with a digest are, if the workspace has them."""
        await self.library.check_bytes(workspace_id, digest)
        (path,) = await self._places({f"the dataset {digest}": digest})
        return path

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Keep files by their digests, for a result that will name them."""
        if self.quota_bytes:
            size_bytes = sum({file.digest: file.size_bytes for file in files}.values())
            if await self.library.stored_bytes(workspace_id) + size_bytes > self.quota_bytes:
                raise StorageFull(
                    f"The workspace may store {self.quota_bytes // MIB} MiB"
                    " (ADE_WORKSPACE_STORAGE_MB), and the files of this job do not fit any more."
                )
        return tuple(await asyncio.to_thread(self.blobs.abreast, self._keep, files))

    def _keep(self, file: OutputFile) -> Artifact:
        """Copy a file among the blobs; what is there must be what was taken from the job."""
        with file.path.open("rb") as source:
            kept = self.blobs.write(iter(lambda: source.read(MIB), b""), file.size_bytes)
        if kept.digest != file.digest:
            raise Unavailable(f"{file.name} changed while it was kept.")
        return described(file, new_id(self.clock), self.blobs.uri(kept.digest))

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        build = await self.library.find_build(workspace_id, build_id)
        if build.status != "ready":
            raise Unavailable(f"The run's build is {build.status}.")
        return build.environment

    async def _places(self, digests: Mapping[str, str]) -> list[Path]:
        """Return where bytes are, once they are on this machine, or say what has none."""
        return await asyncio.to_thread(self.blobs.abreast, self._place, digests.items())

    def _place(self, named: tuple[str, str]) -> Path:
        what, digest = named
        try:
            return self.blobs.existing(digest)
        except NotFound:
            raise NotFound(f"The bytes of {what} are not in the storage any more.") from None
