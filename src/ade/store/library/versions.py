"""Versions: what a configuration was at one moment, written once and never changed."""

import json
from typing import Any, NamedTuple

from sqlalchemy import Table, and_, func, insert, or_, select
from sqlalchemy.sql.elements import ColumnElement

from ade.clock import new_id
from ade.domain.errors import Conflict, NotFound
from ade.store.library.configurations import Configuration
from ade.store.library.drafts import Drafts, File, manifest_digest
from ade.store.library.keys import key
from ade.store.schema import (
    BUILD_SETTLED,
    builds,
    config_versions,
    configurations,
    draft_files,
    jobs,
    requests,
)
from ade.store.statements import Statement

VERSIONS_MAX = 10_000
FIND = Statement(
    lambda d, g: select(config_versions).where(
        config_versions.c.workspace_id == g["workspace_id"], config_versions.c.id == g["id"]
    ),
    ("workspace_id", "id"),
    many=False,
)
FIND_BY_DIGEST = Statement(
    lambda d, g: select(config_versions).where(
        config_versions.c.workspace_id == g["workspace_id"],
        config_versions.c.configuration_id == g["configuration_id"],
        config_versions.c.digest == g["digest"],
    ),
    ("workspace_id", "configuration_id", "digest"),
    many=False,
)


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


class Versions(Drafts):
    """Read and make versions."""

    async def snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        """Make a version of the draft as it is; a draft that did not change is the same version."""
        known = await self._run(lambda: self._same(workspace_id, configuration_id), write=False)
        if known is not None:  # a thousand runs of one draft read, and one of them writes
            return known
        return await self._run(lambda: self._snapshot(workspace_id, configuration_id, by))

    def _same(self, workspace_id: str, configuration_id: str) -> Version | None:
        configuration = self._configuration(workspace_id, configuration_id)
        return self._with_digest(configuration, manifest_digest(self._draft(configuration)))

    def _with_digest(self, configuration: Configuration, digest: str) -> Version | None:
        found = self._first_known(
            FIND_BY_DIGEST, configuration.workspace_id, configuration.id, digest
        )
        return Version(*found) if found else None

    def _snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        self._begin_to_store(workspace_id)
        configuration = self._configuration(workspace_id, configuration_id)
        files = self._draft(configuration)
        digest = manifest_digest(files)
        if known := self._with_digest(configuration, digest):
            return known
        newest = select(func.max(config_versions.c.sequence)).where(_of(configuration))
        sequence = (self._rows(newest)[0][0] or 0) + 1
        if sequence > VERSIONS_MAX:
            raise Conflict(f"A configuration has at most {VERSIONS_MAX} versions.")
        new = Version(
            workspace_id,
            new_id(self._clock),
            configuration.id,
            sequence,
            digest,
            json.dumps([list(file) for file in files]),
            by,
            self._clock.now_us(),
        )
        self._do(insert(config_versions).values(new._asdict()))
        return new

    async def find_version(self, workspace_id: str, version_id: str) -> Version:
        """Find a version by its id, or raise NotFound."""
        return await self._run(lambda: self._find_version(workspace_id, version_id), write=False)

    def _find_version(self, workspace_id: str, version_id: str) -> Version:
        return _found(self._first_known(FIND, workspace_id, key(version_id, "version")))

    async def find_sequence(
        self, workspace_id: str, configuration_id: str, sequence: int
    ) -> Version:
        """Find a version by its number, or raise NotFound."""
        wanted = select(config_versions).where(
            config_versions.c.workspace_id == workspace_id,
            config_versions.c.configuration_id == key(configuration_id, "configuration"),
            config_versions.c.sequence == sequence,
        )
        return _found(await self._run(lambda: self._first(wanted), write=False))

    async def list_versions(
        self, workspace_id: str, configuration_id: str, *, before: str | None, limit: int
    ) -> list[Version]:
        """List the versions of a configuration, newest first, from one on."""

        def listed() -> list[Version]:
            here = _of(self._configuration(workspace_id, configuration_id))
            wanted = select(config_versions).where(here)
            if before is not None:
                last = select(config_versions.c.sequence).where(config_versions.c.id == before)
                wanted = wanted.where(config_versions.c.sequence < last.scalar_subquery())
            wanted = wanted.order_by(config_versions.c.sequence.desc()).limit(limit)
            return [Version(*row) for row in self._rows(wanted)]

        return await self._run(listed, write=False)

    def _file_digests(self) -> set[str]:
        """Name what drafts and versions refer to; of deleted ones only what someone still needs."""
        drafts = (
            select(draft_files.c.digest)
            .select_from(draft_files.join(configurations, _joined(draft_files)))
            .where(configurations.c.deleted_at.is_(None))
        )
        found = {str(row[0]) for row in self._rows(drafts)}
        unfinished = (
            select(requests.c.configuration_id)
            .select_from(requests.join(jobs, _job_of_request()))
            .where(requests.c.configuration_id.is_not(None), jobs.c.finished_at.is_(None))
        )
        building = select(builds.c.configuration_id).where(builds.c.status.not_in(BUILD_SETTLED))
        needed = or_(
            configurations.c.deleted_at.is_(None),
            configurations.c.id.in_(unfinished),
            configurations.c.id.in_(building),
        )
        versions = (
            select(config_versions.c.manifest)
            .select_from(config_versions.join(configurations, _joined(config_versions)))
            .where(needed)
        )
        for (manifest,) in self._rows(versions):
            found |= {entry[1] for entry in json.loads(manifest)}
        return found


def _found(row: tuple[Any, ...] | None) -> Version:
    if row is None:
        raise NotFound("There is no such version of a configuration in this workspace.")
    return Version(*row)


def _of(configuration: Configuration) -> ColumnElement[bool]:
    return and_(
        config_versions.c.workspace_id == configuration.workspace_id,
        config_versions.c.configuration_id == configuration.id,
    )


def _joined(table: Table) -> ColumnElement[bool]:
    return and_(
        table.c.workspace_id == configurations.c.workspace_id,
        table.c.configuration_id == configurations.c.id,
    )


def _job_of_request() -> ColumnElement[bool]:
    return and_(jobs.c.workspace_id == requests.c.workspace_id, jobs.c.id == requests.c.id)
