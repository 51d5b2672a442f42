"""Configurations: rules and code under a name, and the versions of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

from ade.client.aio.builds import AsyncBuild
from ade.client.aio.driver import AsyncSession
from ade.client.answers.catalogue import ConfigurationAnswer, DraftCheck, VersionAnswer
from ade.client.core.exchange import call_bytes, call_json, request_of
from ade.client.core.names import find_id
from ade.client.core.package_files import (
    Files,
    differences,
    pack,
    package_digest,
    read_folder,
    unpack,
    write_folder,
)
from ade.client.core.pages import every
from ade.client.core.steps import Request
from ade.client.core.submission import creating, given
from ade.client.errors import NotFound

ZIP = "application/zip"
UPLOAD_SECONDS = 120.0


@dataclass(frozen=True)
class AsyncConfiguration(ConfigurationAnswer):
    """Rules and code under a name: a draft, and versions that never change."""

    session: AsyncSession = field(repr=False, compare=False, kw_only=True)

    async def refresh(self) -> Self:
        """Read it again, with the digest of its draft and its versions."""
        return type(self).of(await self._call("GET", ""), session=self.session)

    async def push(self, folder: str | PathLike[str], *, only_if: str | None = None) -> str:
        """Replace the draft by the files of a folder; return the digest of the draft.

        Nothing is sent if the draft is the same. `only_if` is the digest that the draft must have:
        PreconditionFailed says that someone else has changed it.
        """
        files = read_folder(Path(folder))
        digest = package_digest(files)
        current = (await self.refresh()).draft_digest
        if current == digest and only_if in (None, current):
            return digest
        headers = {"Content-Type": ZIP} | ({"If-Match": f'"{only_if}"'} if only_if else {})
        # Sent again after a lost answer, If-Match would find its own work.
        repeatable = only_if is None
        path = self._path("/package")
        request = Request("PUT", path, (), headers, pack(files), UPLOAD_SECONDS, repeatable)
        listed = await self.session.run(call_json(request, self.session.policy))
        return str(listed["digest"])

    async def files(self, version: int | None = None) -> dict[str, bytes]:
        """Read the files of the draft, or of a version."""
        rest = "/package" if version is None else f"/versions/{version}/package"
        request = request_of("GET", self._path(rest), headers={"Accept": ZIP})
        return unpack(await self.session.run(call_bytes(request, self.session.policy)))

    async def pull(self, folder: str | PathLike[str], version: int | None = None) -> list[str]:
        """Write the files of the draft, or of a version, to a folder; return those that changed.

        Files of the folder that the configuration does not have are left alone.
        """
        return write_folder(Path(folder), await self.files(version))

    async def diff(
        self, before: int | None, after: int | str | PathLike[str] | None = None
    ) -> list[str]:
        """Compare two versions, or a version with a folder, as lines of a unified diff.

        None is the draft.
        """
        old = await self.files(before)
        new: Files
        if after is None or isinstance(after, int):
            new, name = await self.files(after), _version_name(after)
        else:
            new, name = read_folder(Path(after)), str(after)
        return list(differences(old, new, _version_name(before), name))

    async def validate(self) -> DraftCheck:
        """Load the draft in the sandbox, and list what is wrong with it."""
        return DraftCheck.of(await self._call("POST", "/validate"))

    async def make_version(self) -> VersionAnswer:
        """Make a version of the draft; a draft that did not change gives the same version."""
        return VersionAnswer.of(await self._call("POST", "/versions"))

    def versions(self, limit: int | None = None) -> AsyncIterator[VersionAnswer]:
        """List versions, newest first."""
        path, policy = self._path("/versions"), self.session.policy
        return self.session.iterate(every(path, policy, VersionAnswer.of, limit=limit))

    async def activate(
        self, version: int | None = None, *, idempotency_key: str | None = None
    ) -> AsyncBuild:
        """Make a version the active one as soon as its build is ready, and return that build.

        Without a number, a version of the draft is made and activated.
        """
        if version is None:
            version = (await self.make_version()).sequence
        path = self._path(f"/versions/{version}/activate")
        request = creating(path, None, idempotency_key=idempotency_key)
        body = await self.session.run(call_json(request, self.session.policy))
        return AsyncBuild.of(body, session=self.session)

    async def activation(self, version: int) -> Mapping[str, Any]:
        """Read how far the activation of a version has come, and what it found."""
        found: Mapping[str, Any] = await self._call("GET", f"/versions/{version}/activation")
        return found

    async def delete(self) -> None:
        """Delete it; runs that were accepted before still run as they were."""
        await self._call("DELETE", "")

    async def _call(self, method: Any, rest: str) -> Any:
        request = request_of(method, self._path(rest), repeatable=True)
        return await self.session.run(call_json(request, self.session.policy))

    def _path(self, rest: str) -> str:
        return self.session.path(f"configurations/{self.id}{rest}")


class AsyncConfigurations:
    """The configurations of a workspace."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def create(
        self,
        name: str,
        *,
        template: str | None = None,
        folder: str | PathLike[str] | None = None,
    ) -> AsyncConfiguration:
        """Create a configuration: empty, from a template, or from the files of a folder."""
        if folder is not None:
            read_folder(Path(folder))  # refuses a bad one before anything is made
        path = self._session.path("configurations")
        request = request_of("POST", path, json_body=given(name=name, template=template))
        made = self._configuration(
            await self._session.run(call_json(request, self._session.policy))
        )
        if folder is not None:
            await made.push(folder)
            made = await made.refresh()
        return made

    async def get(self, name_or_id: str) -> AsyncConfiguration:
        """Read a configuration, by its name or its id."""
        found = await self.find_id(name_or_id)
        return await AsyncConfiguration(id=found, session=self._session).refresh()

    async def get_or_create(self, name: str) -> AsyncConfiguration:
        """Read a configuration, or create an empty one of this name."""
        try:
            return await self.get(name)
        except NotFound:
            return await self.create(name)

    async def find_id(self, name_or_id: str) -> str:
        """Return the id of a configuration; raise NotFound with the nearest names."""
        path = self._session.path("configurations")
        return await self._session.run(
            find_id(path, "configuration", name_or_id, self._session.policy)
        )

    def list(self, limit: int | None = None) -> AsyncIterator[AsyncConfiguration]:
        """List configurations, newest first; without their drafts and versions."""
        path, policy = self._session.path("configurations"), self._session.policy
        return self._session.iterate(every(path, policy, self._configuration, limit=limit))

    async def templates(self) -> tuple[str, ...]:
        """List the templates that a new configuration may start from."""
        request = request_of("GET", self._session.path("templates"))
        found = await self._session.run(call_json(request, self._session.policy))
        return tuple(one["name"] for one in found["items"])

    def _configuration(self, body: Mapping[str, Any]) -> AsyncConfiguration:
        return AsyncConfiguration.of(body, session=self._session)


def _version_name(version: int | None) -> str:
    return "draft" if version is None else f"version-{version}"
