"""The inputs and outputs of one attempt on a host that reaches neither database nor storage."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from ade.agents.input_cache import InputCache
from ade.agents.server_calls import ServerCalls
from ade.agents.uploads import Uploads, place_of
from ade.app.agent_messages import (
    BlobMessage,
    DocumentMessage,
    EnvironmentMessage,
    FileMessage,
    InputMessage,
    PackageMessage,
)
from ade.app.artifacts import artifact_of
from ade.clock import SystemClock, new_id
from ade.domain.outcome import Artifact, OutputFile
from ade.kinds.kind import InstalledPackages, VersionPackage
from ade.store.rows import LeaseRef
from ade.worker.cell_environments import CellEnvironments

FETCHES_MAX = 8
Answer = TypeVar("Answer")


class RemoteJobIO:
    """Ask the server for the inputs of an attempt, and send it what the attempt leaves."""

    def __init__(
        self,
        lease: LeaseRef,
        calls: ServerCalls,
        *,
        cache: InputCache,
        uploads: Uploads,
        environments: CellEnvironments,
    ) -> None:
        self._lease = lease
        self._calls = calls
        self._cache = cache
        self._uploads = uploads
        self._environments = environments
        self._clock = SystemClock()
        self._fetches = asyncio.Semaphore(FETCHES_MAX)

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        """Return where a document's bytes are, and its name."""
        found = await self._asked("document", document_id, DocumentMessage)
        return await self._fetched(found.file), found.name

    async def package(self, workspace_id: str, version_id: str) -> VersionPackage:
        """Return a version of a configuration, and where the bytes of its files are."""
        found = await self._asked("package", version_id, PackageMessage)
        places = await asyncio.gather(*map(self._fetched, found.files.values()))
        files = dict(zip(found.files, places, strict=True))
        return VersionPackage(found.configuration_id, found.sequence, found.digest, files)

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Return where the bytes with a digest are."""
        found = await self._asked("blob", digest, BlobMessage)
        return await self._fetched(found.file)

    async def keep(self, workspace_id: str, files: Sequence[OutputFile]) -> tuple[Artifact, ...]:
        """Send files to the server, for a result that will name them.

        The server gives them the identifiers that count when it accepts the end of the attempt.
        """
        for file in {file.digest: file for file in files}.values():
            await self._uploads.send(self._lease, file.digest, file.path, file.size_bytes)
        return tuple(artifact_of(file, new_id(self._clock), "") for file in files)

    async def packages(self, requirements: Sequence[str]) -> InstalledPackages:
        """Install what a cell requires, unless it is there, and return where."""
        return await self._environments.installed(requirements)

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        """Return which installed packages a build made; None is ADE's own environment."""
        found = await self._asked("environment", build_id, EnvironmentMessage)
        return found.environment

    async def _asked(self, what: str, name: str, answer: type[Answer]) -> Answer:
        message = InputMessage(self._lease, name)
        found: Any = await self._calls.post(f"inputs/{what}", message, answer)
        return found

    async def _fetched(self, file: FileMessage) -> Path:
        url = f"/api/agent/{place_of(self._lease, file.digest)}?link={file.link}"
        async with self._fetches:
            return await self._cache.fetched(file.digest, url)
