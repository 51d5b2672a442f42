"""What a workspace stores, in bytes: documents, artifacts, drafts and versions.

The same bytes count once among documents and artifacts, and once among the files of configurations,
however many refer to them. What was deleted does not count, although its bytes may stay on the disk
for a while, for the jobs that still need them.
"""

import json
from collections.abc import Sequence

from ade.domain.errors import StorageFull
from ade.domain.units import MIB
from ade.store.executor import Executor
from ade.store.rows import Configuration, File

Sizes = dict[str, int]
# Versions never change and stay as long as their configuration. For each configuration: how many
# versions were read, and the sizes of what is in them. They are read again when there are more.
VersionSizes = dict[str, tuple[int, Sizes]]


class StorageUsage:
    """Count what a workspace stores, and refuse more than its quota; a quota of 0 is no limit."""

    def __init__(self, sql: Executor, version_sizes: VersionSizes) -> None:
        self._sql = sql
        self._version_sizes = version_sizes

    def stored_bytes(self, workspace_id: str) -> int:
        """Count the bytes that a workspace stores."""
        return self._content_bytes(workspace_id) + sum(self._file_sizes(workspace_id).values())

    def refuse_document(
        self, workspace_id: str, digest: str, size_bytes: int, quota_bytes: int
    ) -> None:
        """Raise StorageFull if the workspace would store too much with a new document."""
        if quota_bytes:
            is_known = self._sql.first("find_content", workspace_id, digest) is not None
            added = 0 if is_known else size_bytes
            _refuse_above(quota_bytes, self.stored_bytes(workspace_id) + added)

    def refuse_draft(
        self, configuration: Configuration, draft: Sequence[File], quota_bytes: int
    ) -> None:
        """Raise StorageFull if the workspace would store too much with this draft."""
        if quota_bytes:
            sizes = self._file_sizes(configuration.workspace_id, besides=configuration.id)
            sizes |= {file.digest: file.size_bytes for file in draft}
            stored = self._content_bytes(configuration.workspace_id) + sum(sizes.values())
            _refuse_above(quota_bytes, stored)

    def digests_in_use(self) -> set[str]:
        """List every blob that is referred to: by documents, configurations, results, builds."""
        self._sql.dialect.plan_freely(self._sql.cursor)  # it reads whole tables
        listed = (
            "document_digests",
            "draft_digests",
            "artifact_digests",
            "environment_archive_digests",
        )
        found = {str(row[0]) for name in listed for row in self._sql.rows(name)}
        for (manifest,) in self._sql.rows("manifests_in_use"):
            found |= {entry[1] for entry in json.loads(manifest)}
        return found

    def _content_bytes(self, workspace_id: str) -> int:
        return int(self._sql.scalar("content_bytes", workspace_id))

    def _file_sizes(self, workspace_id: str, *, besides: str | None = None) -> Sizes:
        """Read the sizes of what is in versions and drafts, all drafts or all but one."""
        sizes: Sizes = {}
        for configuration_id, digest, size_bytes in self._sql.rows("draft_sizes", workspace_id):
            if configuration_id != besides:
                sizes[digest] = size_bytes
        for configuration_id, count in self._sql.rows("count_versions", workspace_id):
            sizes |= self._sizes_of_versions(workspace_id, configuration_id, int(count))
        return sizes

    def _sizes_of_versions(self, workspace_id: str, configuration_id: str, count: int) -> Sizes:
        known = self._version_sizes.get(configuration_id)
        if known is None or known[0] != count:
            manifests = self._sql.rows("list_manifests", workspace_id, configuration_id)
            sizes = {digest: size for (text,) in manifests for _, digest, size in json.loads(text)}
            known = self._version_sizes[configuration_id] = (len(manifests), sizes)
        return known[1]


def _refuse_above(quota_bytes: int, stored_bytes: int) -> None:
    if stored_bytes > quota_bytes:
        raise StorageFull(
            f"The workspace may store at most {quota_bytes // MIB} MiB (ADE_WORKSPACE_STORAGE_MB);"
            " delete documents or configurations."
        )
