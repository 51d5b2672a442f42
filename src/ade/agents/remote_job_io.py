"""The inputs and outputs of one attempt on a host that reaches neither database nor storage."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ade.agents.input_cache import InputCache
from ade.agents.server_calls import ServerCalls
from ade.agents.uploads import Uploads, place_of
from ade.app.agent_messages import (
    ArchiveMessage,
    BlobMessage,
    DocumentMessage,
    EnvironmentMessage,
    FileMessage,
    InputMessage,
    KnownEnvironmentMessage,
    MadeEnvironmentMessage,
    PackageMessage,
    RecipeMessage,
    SentArchive,
)
from ade.app.artifacts import artifact_of
from ade.clock import SystemClock, new_id
from ade.domain.outcome import Artifact, OutputFile
from ade.environments.archive import Recipe, read_recipe
from ade.environments.environment import is_there
from ade.environments.install import to_the_end, workshop
from ade.environments.shared import ARCHIVE, describe, obtain
from ade.kinds.kind import InstalledPackages, VersionPackage
from ade.store.rows import LeaseRef
from ade.worker.cell_environments import CellEnvironments

FETCHES_MAX = 8
# How long the server may take to pack an environment that no other host has asked for yet.
ARCHIVE_SECONDS = 300.0
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
        named = await self._asked("environment", build_id, EnvironmentMessage)
        settings = self._environments.settings
        if named.environment is None or is_there(named.environment, settings):
            return named.environment
        found: ArchiveMessage = await self._calls.post(
            "inputs/environment-archive",
            InputMessage(self._lease, build_id),
            ArchiveMessage,
            patience_seconds=ARCHIVE_SECONDS,
        )
        given = found.recipe
        recipe = Recipe(
            given.environment,
            given.lock,
            given.interpreter,
            given.installer,
            given.source_builds,
        )
        return await obtain(recipe, lambda: self._fetched(found.file), settings)

    async def made_environment(self, environment: str) -> None:
        """Send the server the packages that a build installed, unless it has them."""
        settings = self._environments.settings
        recipe, _ = await asyncio.to_thread(read_recipe, environment, settings)
        message = MadeEnvironmentMessage(self._lease, RecipeMessage(*recipe))
        answer = await self._calls.post("environments", message, KnownEnvironmentMessage)
        if answer.known:
            return
        async with workshop(settings) as folder:
            packed = await to_the_end(describe, environment, folder / ARCHIVE, settings)
            digest = await asyncio.to_thread(_digest_of, folder / ARCHIVE)
            await self._uploads.send(self._lease, digest, folder / ARCHIVE, packed.archive_bytes)
        receipt = self._uploads.receipts(self._lease)[digest]
        sent = SentArchive(digest, packed.archive_bytes, packed.installed_bytes, receipt)
        await self._calls.post(
            "environments", replace(message, archive=sent), KnownEnvironmentMessage
        )

    async def _asked(self, what: str, name: str, answer: type[Answer]) -> Answer:
        message = InputMessage(self._lease, name)
        found: Any = await self._calls.post(f"inputs/{what}", message, answer)
        return found

    async def _fetched(self, file: FileMessage) -> Path:
        url = f"/api/agent/{place_of(self._lease, file.digest)}?link={file.link}"
        async with self._fetches:
            return await self._cache.fetched(file.digest, url)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
