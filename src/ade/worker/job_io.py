"""The inputs and outputs of jobs: documents and packages by path, artifacts by digest."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ade.app.artifacts import artifact_of
from ade.app.catalogue import Catalogue
from ade.clock import Clock, SystemClock, new_id
from ade.domain.errors import NotFound, StorageFull, Unavailable
from ade.domain.outcome import Artifact, OutputFile
from ade.domain.units import MIB
from ade.environments.shared import SharedEnvironments
from ade.kinds.kind import InstalledPackages, VersionPackage
from ade.storage import Blobs
from ade.worker.cell_environments import CellEnvironments

NO_PACKAGES = "This worker cannot install packages."
NO_CATALOGUE = "This worker has no catalogue of documents, configurations and artifacts."


class NoJobIO:
    """Serve a worker without a catalogue: jobs that need one fail."""

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Raise that there are no documents."""
        raise Unavailable(NO_CATALOGUE)

    async def package(self, workspace_id: str, version_id: str) -> VersionPackage:
        """Raise that there are no configurations."""
        raise Unavailable(NO_CATALOGUE)

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Raise that there are no stored bytes."""
        raise Unavailable(NO_CATALOGUE)

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Raise that nothing can be kept."""
        raise Unavailable(NO_CATALOGUE)

    async def packages(self, requirements: Sequence[str]) -> InstalledPackages:
        """Raise that nothing can be installed."""
        raise Unavailable(NO_PACKAGES)

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Raise that there are no builds."""
        raise Unavailable(NO_CATALOGUE)

    async def made_environment(self, environment: str) -> None:
        """Do nothing: there are no other hosts."""


@dataclass(frozen=True, slots=True)
class CatalogueJobIO:
    """Look up documents and versions in the catalogue, and their bytes in the storage."""

    catalogue: Catalogue
    blobs: Blobs
    quota_bytes: int = 0
    clock: Clock = field(default_factory=SystemClock)
    environments: CellEnvironments | None = None
    shared: SharedEnvironments | None = None

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name; also one that was deleted since."""
        found = await self.catalogue.find_document(workspace_id, document_id, deleted_too=True)
        (path,) = await self._places({f"document {found.name[:100]!r}": found.digest})
        return path, found.name

    async def package(self, workspace_id: str, version_id: str) -> VersionPackage:
        """Return a version of a configuration, and where the bytes of its files are."""
        version = await self.catalogue.find_version(workspace_id, version_id)
        digests = {file.path: file.digest for file in version.files}
        files = dict(zip(digests, await self._places(digests), strict=True))
        return VersionPackage(version.configuration_id, version.sequence, version.digest, files)

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Return where the bytes with a digest are, if the workspace has them."""
        await self.catalogue.check_bytes(workspace_id, digest)
        (path,) = await self._places({f"the dataset {digest}": digest})
        return path

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Keep files by their digests, for a result that will name them."""
        if self.quota_bytes:
            size_bytes = sum({file.digest: file.size_bytes for file in files}.values())
            if await self.catalogue.stored_bytes(workspace_id) + size_bytes > self.quota_bytes:
                raise StorageFull(
                    f"The workspace may store at most {self.quota_bytes // MIB} MiB"
                    " (ADE_WORKSPACE_STORAGE_MB), and the files of this job do not fit any more."
                )
        return tuple(await asyncio.to_thread(self.blobs.concurrently, self._keep, files))

    def _keep(self, file: OutputFile) -> Artifact:
        """Copy a file among the blobs; what is there must be what was taken from the job."""
        with file.path.open("rb") as source:
            kept = self.blobs.write(iter(lambda: source.read(MIB), b""), file.size_bytes)
        if kept.digest != file.digest:
            raise Unavailable(f"{file.name} changed while it was stored.")
        return artifact_of(file, new_id(self.clock), self.blobs.uri(kept.digest))

    async def packages(self, requirements: Sequence[str]) -> InstalledPackages:
        """Install what a cell requires, unless it is there, and return where."""
        if self.environments is None:
            raise Unavailable(NO_PACKAGES)
        return await self.environments.installed(requirements)

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        build = await self.catalogue.find_build(workspace_id, build_id)
        if build.status != "ready":
            raise Unavailable(f"The run's build is {build.status}.")
        if build.environment is None or self.shared is None:
            return build.environment
        return await self.shared.obtain(build.environment)

    async def made_environment(self, environment: str) -> None:
        """Share the packages that a build installed with the other hosts."""
        if self.shared is not None:
            await self.shared.made(environment)

    async def _places(self, digests: Mapping[str, str]) -> list[Path]:
        """Return the path of bytes once they are on this machine, or raise if there are none."""
        return await asyncio.to_thread(self.blobs.concurrently, self._place, digests.items())

    def _place(self, named: tuple[str, str]) -> Path:
        what, digest = named
        try:
            return self.blobs.existing(digest)
        except NotFound:
            raise NotFound(f"The bytes of {what} are not in the storage any more.") from None
