"""What a workspace keeps, in bytes: documents, artifacts, drafts and versions.

The same bytes count once among documents and artifacts and once among the files of configurations,
however often they are referred to. What was deleted counts no more, though its bytes may stay for a
while on the disk for the jobs that were given them.
"""

import json

from sqlalchemy import and_, func, select, union, update

from ade.clock import Clock
from ade.domain.errors import StorageFull
from ade.store.desk import Desk
from ade.store.schema import (
    artifacts,
    config_versions,
    configurations,
    documents,
    draft_files,
    workspaces,
)

MIB = 1024 * 1024
Sizes = dict[str, int]


class Holdings(Desk):
    """Count what a workspace keeps, and refuse more than its quota."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        super().__init__(url, clock=clock)
        # Versions never change and stay as long as their configuration: how many of one were read,
        # and what is in them. Read again only when there are more.
        self._versions_read: dict[str, tuple[int, Sizes]] = {}

    async def stored_bytes(self, workspace_id: str) -> int:
        """Count the bytes that a workspace keeps."""
        return await self._run(lambda: self._stored_bytes(workspace_id), write=False)

    def _stored_bytes(self, workspace_id: str) -> int:
        return self._blob_bytes(workspace_id) + self._file_bytes(workspace_id)

    def _begin_to_store(self, workspace_id: str) -> None:
        """Let one transaction at a time store something in a workspace, so that the count holds."""
        same = workspaces.c.id == workspace_id
        self._do(update(workspaces).where(same).values(name=workspaces.c.name))

    def _refuse_above(self, workspace_id: str, quota_bytes: int) -> None:
        """Raise, and so undo what was stored, if it is more than allowed; 0 allows everything."""
        if quota_bytes and self._stored_bytes(workspace_id) > quota_bytes:
            raise StorageFull(
                f"The workspace may store {quota_bytes // MIB} MiB (ADE_WORKSPACE_STORAGE_MB);"
                " delete documents or configurations."
            )

    def _blob_bytes(self, workspace_id: str) -> int:
        distinct = union(
            select(documents.c.digest, documents.c.size_bytes).where(
                documents.c.workspace_id == workspace_id, documents.c.deleted_at.is_(None)
            ),
            select(artifacts.c.digest, artifacts.c.size_bytes).where(
                artifacts.c.workspace_id == workspace_id
            ),
        ).subquery()
        total = self._first(select(func.coalesce(func.sum(distinct.c.size_bytes), 0)))
        return int(total[0]) if total else 0

    def _file_bytes(self, workspace_id: str) -> int:
        alive = and_(
            configurations.c.workspace_id == workspace_id, configurations.c.deleted_at.is_(None)
        )
        of_draft = and_(
            configurations.c.workspace_id == draft_files.c.workspace_id,
            configurations.c.id == draft_files.c.configuration_id,
        )
        drafts = (
            select(draft_files.c.digest, draft_files.c.size_bytes)
            .select_from(draft_files.join(configurations, of_draft))
            .where(alive)
        )
        of_version = and_(
            configurations.c.workspace_id == config_versions.c.workspace_id,
            configurations.c.id == config_versions.c.configuration_id,
        )
        counts = (
            select(config_versions.c.configuration_id, func.count())
            .select_from(config_versions.join(configurations, of_version))
            .where(alive)
            .group_by(config_versions.c.configuration_id)
        )
        found: Sizes = dict(row for row in self._rows(drafts))
        for configuration_id, count in self._rows(counts):
            found |= self._version_sizes(str(configuration_id), int(count))
        return sum(found.values())

    def _version_sizes(self, configuration_id: str, count: int) -> Sizes:
        known = self._versions_read.get(configuration_id)
        if known is None or known[0] != count:
            same = config_versions.c.configuration_id == configuration_id
            rows = self._rows(select(config_versions.c.manifest).where(same))
            sizes = {digest: size for (text,) in rows for _, digest, size in json.loads(text)}
            known = self._versions_read[configuration_id] = (len(rows), sizes)
        return known[1]
