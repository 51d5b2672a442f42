"""Configurations: the files of a draft, and versions that never change.

A version is a list of files by digest, written once; a draft is the same list while it is edited.
"""

import json
from typing import NamedTuple

from sqlalchemy import and_, delete, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from ade.clock import new_id
from ade.domain.errors import Conflict, NotFound
from ade.domain.keys import digest as digest_of
from ade.store.desk import Desk
from ade.store.library.keys import key
from ade.store.schema import config_versions, configurations, draft_files

FILES_MAX = 1000


class Configuration(NamedTuple):
    """Hold a configuration."""

    workspace_id: str
    id: str
    name: str
    created_at: int
    deleted_at: int | None


class File(NamedTuple):
    """Hold one file of a draft or of a version."""

    path: str
    digest: str
    size_bytes: int


class Version(NamedTuple):
    """Hold what a configuration was at one moment."""

    workspace_id: str
    id: str
    configuration_id: str
    sequence: int
    digest: str
    manifest: str
    created_by: str
    created_at: int

    @property
    def files(self) -> list[File]:
        """Return its files in the order of their paths."""
        return [File(*entry) for entry in json.loads(self.manifest)]


def manifest_digest(files: list[File]) -> str:
    """Name a set of files by what is in it."""
    return digest_of([[file.path, file.digest] for file in sorted(files)])


class Configurations(Desk):
    """Read and change configurations, drafts and versions."""

    async def add_configuration(
        self, workspace_id: str, name: str, files: list[File]
    ) -> Configuration:
        """Make a configuration with a first draft."""
        return await self._run(lambda: self._add_configuration(workspace_id, name, files))

    def _add_configuration(self, workspace_id: str, name: str, files: list[File]) -> Configuration:
        now = self._clock.now_us()
        new = Configuration(workspace_id, new_id(self._clock), name, now, None)
        self._do(insert(configurations).values(new._asdict()))
        self._insert_files(workspace_id, new.id, files)
        return new

    async def find_configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        """Find a configuration that was not deleted, or raise NotFound."""
        wanted = key(configuration_id, "configuration")
        return await self._run(lambda: self._configuration(workspace_id, wanted), write=False)

    def _configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        found = self._first(
            select(configurations).where(
                configurations.c.workspace_id == workspace_id,
                configurations.c.id == configuration_id,
                configurations.c.deleted_at.is_(None),
            )
        )
        if found is None:
            raise NotFound("There is no such configuration in this workspace.")
        return Configuration(*found)

    async def list_configurations(
        self, workspace_id: str, *, before: str | None, limit: int
    ) -> list[Configuration]:
        """List configurations, newest first, from one on."""
        wanted = select(configurations).where(
            configurations.c.workspace_id == workspace_id, configurations.c.deleted_at.is_(None)
        )
        if before is not None:
            wanted = wanted.where(configurations.c.id < before)
        wanted = wanted.order_by(configurations.c.id.desc()).limit(limit)
        rows = await self._run(lambda: self._rows(wanted), write=False)
        return [Configuration(*row) for row in rows]

    async def delete_configuration(self, workspace_id: str, configuration_id: str) -> None:
        """Put a configuration out of sight; its versions stay for the runs that name them."""
        found = await self.find_configuration(workspace_id, configuration_id)
        gone = (
            update(configurations)
            .where(configurations.c.workspace_id == workspace_id, configurations.c.id == found.id)
            .values(deleted_at=self._clock.now_us())
        )
        await self._run(lambda: self._do(gone))

    async def draft(self, workspace_id: str, configuration_id: str) -> list[File]:
        """List the files of a draft in the order of their paths."""
        return await self._run(lambda: self._draft(workspace_id, configuration_id), write=False)

    def _draft(self, workspace_id: str, configuration_id: str) -> list[File]:
        wanted = (
            select(draft_files.c.path, draft_files.c.digest, draft_files.c.size_bytes)
            .where(_of_draft(workspace_id, configuration_id))
            .order_by(draft_files.c.path)
        )
        return sorted(File(*row) for row in self._rows(wanted))

    async def put_file(self, workspace_id: str, configuration_id: str, file: File) -> None:
        """Write one file of a draft."""
        await self._run(lambda: self._put_file(workspace_id, configuration_id, file))

    def _put_file(self, workspace_id: str, configuration_id: str, file: File) -> None:
        self._configuration(workspace_id, configuration_id)
        present = {known.path for known in self._draft(workspace_id, configuration_id)}
        if file.path not in present and len(present) >= FILES_MAX:
            raise Conflict(f"A configuration has at most {FILES_MAX} files.")
        place = and_(_of_draft(workspace_id, configuration_id), draft_files.c.path == file.path)
        self._do(delete(draft_files).where(place))
        self._insert_files(workspace_id, configuration_id, [file])

    async def delete_file(self, workspace_id: str, configuration_id: str, path: str) -> None:
        """Take one file out of a draft, or raise NotFound."""
        await self._run(lambda: self._delete_file(workspace_id, configuration_id, path))

    def _delete_file(self, workspace_id: str, configuration_id: str, path: str) -> None:
        if path not in {file.path for file in self._draft(workspace_id, configuration_id)}:
            raise NotFound("There is no such file in the draft.")
        place = and_(_of_draft(workspace_id, configuration_id), draft_files.c.path == path)
        self._do(delete(draft_files).where(place))

    async def replace_draft(
        self, workspace_id: str, configuration_id: str, files: list[File]
    ) -> None:
        """Put other files in the place of a whole draft."""
        await self._run(lambda: self._replace_draft(workspace_id, configuration_id, files))

    def _replace_draft(self, workspace_id: str, configuration_id: str, files: list[File]) -> None:
        self._configuration(workspace_id, configuration_id)
        self._do(delete(draft_files).where(_of_draft(workspace_id, configuration_id)))
        self._insert_files(workspace_id, configuration_id, files)

    def _insert_files(self, workspace_id: str, configuration_id: str, files: list[File]) -> None:
        now = self._clock.now_us()
        for file in files:
            row = {"workspace_id": workspace_id, "configuration_id": configuration_id}
            self._do(insert(draft_files).values(**row, **file._asdict(), changed_at=now))

    async def snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        """Make a version of the draft as it is; a draft that did not change is the same version."""
        known = await self._run(lambda: self._same(workspace_id, configuration_id), write=False)
        if known is not None:  # a thousand runs of one draft read, and one of them writes
            return known
        return await self._run(lambda: self._snapshot(workspace_id, configuration_id, by))

    def _same(self, workspace_id: str, configuration_id: str) -> Version | None:
        self._configuration(workspace_id, configuration_id)
        digest = manifest_digest(self._draft(workspace_id, configuration_id))
        same = and_(
            config_versions.c.configuration_id == configuration_id,
            config_versions.c.digest == digest,
        )
        found = self._first(select(config_versions).where(same))
        return Version(*found) if found else None

    def _snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        if known := self._same(workspace_id, configuration_id):
            return known
        files = self._draft(workspace_id, configuration_id)
        digest = manifest_digest(files)
        newest = self._first(
            select(func.max(config_versions.c.sequence)).where(
                config_versions.c.configuration_id == configuration_id
            )
        )
        sequence = (newest[0] if newest and newest[0] else 0) + 1
        manifest = json.dumps([list(file) for file in files])
        new = Version(
            workspace_id,
            new_id(self._clock),
            configuration_id,
            sequence,
            digest,
            manifest,
            by,
            self._clock.now_us(),
        )
        self._do(insert(config_versions).values(new._asdict()))
        return new

    async def find_version(self, workspace_id: str, version_id: str) -> Version:
        """Find a version by its id, or raise NotFound."""
        here = and_(
            config_versions.c.workspace_id == workspace_id,
            config_versions.c.id == key(version_id, "version"),
        )
        return await self._version(here)

    async def find_sequence(
        self, workspace_id: str, configuration_id: str, sequence: int
    ) -> Version:
        """Find a version by its number, or raise NotFound."""
        here = and_(
            config_versions.c.workspace_id == workspace_id,
            config_versions.c.configuration_id == key(configuration_id, "configuration"),
            config_versions.c.sequence == sequence,
        )
        return await self._version(here)

    async def _version(self, here: ColumnElement[bool]) -> Version:
        wanted = select(config_versions).where(here)
        found = await self._run(lambda: self._first(wanted), write=False)
        if found is None:
            raise NotFound("There is no such version of a configuration in this workspace.")
        return Version(*found)

    async def list_versions(self, workspace_id: str, configuration_id: str) -> list[Version]:
        """List the versions of a configuration, newest first."""
        wanted = (
            select(config_versions)
            .where(
                config_versions.c.workspace_id == workspace_id,
                config_versions.c.configuration_id == configuration_id,
            )
            .order_by(config_versions.c.sequence.desc())
            .limit(FILES_MAX)
        )
        return [Version(*row) for row in await self._run(lambda: self._rows(wanted), write=False)]

    def _file_digests(self) -> set[str]:
        found = {str(row[0]) for row in self._rows(select(draft_files.c.digest))}
        for (manifest,) in self._rows(select(config_versions.c.manifest)):
            found |= {entry[1] for entry in json.loads(manifest)}
        return found


def _of_draft(workspace_id: str, configuration_id: str) -> ColumnElement[bool]:
    return and_(
        draft_files.c.workspace_id == workspace_id,
        draft_files.c.configuration_id == configuration_id,
    )
