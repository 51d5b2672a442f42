# Written from ade/client/aio/configurations.py by scripts/write_sync_client.py; edit that instead.
"""Configurations: rules and code under a name, and the versions of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

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
from ade.client.sync.builds import Build
from ade.client.sync.driver import Session

ZIP = "application/zip"
UPLOAD_SECONDS = 120.0


@dataclass(frozen=True)
class Configuration(ConfigurationAnswer):
    """Rules and code under a name: a draft, and versions that never change."""

    session: Session = field(repr=False, compare=False, kw_only=True)

    def refresh(self) -> Self:
        """Read it again, with the digest of its draft and its versions."""
        return type(self).of(self._call("GET", ""), session=self.session)

    def push(self, folder: str | PathLike[str], *, only_if: str | None = None) -> str:
        """Replace the draft by the files of a folder; return the digest of the draft.

        Nothing is sent if the draft is the same. `only_if` is the digest that the draft must have:
        PreconditionFailed says that someone else has changed it.
        """
        files = read_folder(Path(folder))
        digest = package_digest(files)
        current = (self.refresh()).draft_digest
        if current == digest and only_if in (None, current):
            return digest
        headers = {"Content-Type": ZIP} | ({"If-Match": f'"{only_if}"'} if only_if else {})
        # Sent again after a lost answer, If-Match would find its own work.
        repeatable = only_if is None
        path = self._path("/package")
        request = Request("PUT", path, (), headers, pack(files), UPLOAD_SECONDS, repeatable)
        listed = self.session.run(call_json(request, self.session.policy))
        return str(listed["digest"])

    def files(self, version: int | None = None) -> dict[str, bytes]:
        """Read the files of the draft, or of a version."""
        rest = "/package" if version is None else f"/versions/{version}/package"
        request = request_of("GET", self._path(rest), headers={"Accept": ZIP})
        return unpack(self.session.run(call_bytes(request, self.session.policy)))

    def pull(self, folder: str | PathLike[str], version: int | None = None) -> list[str]:
        """Write the files of the draft, or of a version, to a folder; return those that changed.

        Files of the folder that the configuration does not have are left alone.
        """
        return write_folder(Path(folder), self.files(version))

    def diff(self, before: int | None, after: int | str | PathLike[str] | None = None) -> list[str]:
        """Compare two versions, or a version with a folder, as lines of a unified diff.

        None is the draft.
        """
        old = self.files(before)
        new: Files
        if after is None or isinstance(after, int):
            new, name = self.files(after), _version_name(after)
        else:
            new, name = read_folder(Path(after)), str(after)
        return list(differences(old, new, _version_name(before), name))

    def validate(self) -> DraftCheck:
        """Load the draft in the sandbox, and list what is wrong with it."""
        return DraftCheck.of(self._call("POST", "/validate"))

    def make_version(self) -> VersionAnswer:
        """Make a version of the draft; a draft that did not change gives the same version."""
        return VersionAnswer.of(self._call("POST", "/versions"))

    def versions(self, limit: int | None = None) -> Iterator[VersionAnswer]:
        """List versions, newest first."""
        path, policy = self._path("/versions"), self.session.policy
        return self.session.iterate(every(path, policy, VersionAnswer.of, limit=limit))

    def activate(self, version: int | None = None, *, idempotency_key: str | None = None) -> Build:
        """Make a version the active one as soon as its build is ready, and return that build.

        Without a number, a version of the draft is made and activated.
        """
        if version is None:
            version = (self.make_version()).sequence
        path = self._path(f"/versions/{version}/activate")
        request = creating(path, None, idempotency_key=idempotency_key)
        body = self.session.run(call_json(request, self.session.policy))
        return Build.of(body, session=self.session)

    def activation(self, version: int) -> Mapping[str, Any]:
        """Read how far the activation of a version has come, and what it found."""
        found: Mapping[str, Any] = self._call("GET", f"/versions/{version}/activation")
        return found

    def delete(self) -> None:
        """Delete it; runs that were accepted before still run as they were."""
        self._call("DELETE", "")

    def _call(self, method: Any, rest: str) -> Any:
        request = request_of(method, self._path(rest), repeatable=True)
        return self.session.run(call_json(request, self.session.policy))

    def _path(self, rest: str) -> str:
        return self.session.path(f"configurations/{self.id}{rest}")


class Configurations:
    """The configurations of a workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(
        self,
        name: str,
        *,
        template: str | None = None,
        folder: str | PathLike[str] | None = None,
    ) -> Configuration:
        """Create a configuration: empty, from a template, or from the files of a folder."""
        if folder is not None:
            read_folder(Path(folder))  # refuses a bad one before anything is made
        path = self._session.path("configurations")
        request = request_of("POST", path, json_body=given(name=name, template=template))
        made = self._configuration(self._session.run(call_json(request, self._session.policy)))
        if folder is not None:
            made.push(folder)
            made = made.refresh()
        return made

    def get(self, name_or_id: str) -> Configuration:
        """Read a configuration, by its name or its id."""
        found = self.find_id(name_or_id)
        return Configuration(id=found, session=self._session).refresh()

    def get_or_create(self, name: str) -> Configuration:
        """Read a configuration, or create an empty one of this name."""
        try:
            return self.get(name)
        except NotFound:
            return self.create(name)

    def find_id(self, name_or_id: str) -> str:
        """Return the id of a configuration; raise NotFound with the nearest names."""
        path = self._session.path("configurations")
        return self._session.run(find_id(path, "configuration", name_or_id, self._session.policy))

    def list(self, limit: int | None = None) -> Iterator[Configuration]:
        """List configurations, newest first; without their drafts and versions."""
        path, policy = self._session.path("configurations"), self._session.policy
        return self._session.iterate(every(path, policy, self._configuration, limit=limit))

    def templates(self) -> tuple[str, ...]:
        """List the templates that a new configuration may start from."""
        request = request_of("GET", self._session.path("templates"))
        found = self._session.run(call_json(request, self._session.policy))
        return tuple(one["name"] for one in found["items"])

    def _configuration(self, body: Mapping[str, Any]) -> Configuration:
        return Configuration.of(body, session=self._session)


def _version_name(version: int | None) -> str:
    return "draft" if version is None else f"version-{version}"
