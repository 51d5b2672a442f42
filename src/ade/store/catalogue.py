"""Documents, configurations with their drafts and versions, and the files of results.

Their contents are blobs, which the database knows by digest only. Every change checks what it may
refuse before it writes anything: what is refused leaves nothing, and the changes of others that
share its transaction commit (`SqlTransaction.attempt`).
"""

import json
from typing import Any

from ade.domain.configuration import (
    ABSENT,
    CONFIGURATIONS_MAX,
    DRAFT_BYTES_MAX,
    FILES_MAX,
    VERSIONS_MAX,
    manifest_digest,
)
from ade.domain.errors import Conflict, NotFound, PayloadTooLarge, PreconditionFailed
from ade.domain.file_names import refuse_clashes
from ade.domain.ids import is_uuid
from ade.store.executor import Executor, id_at
from ade.store.rows import ArtifactRow, Configuration, Document, File, Version
from ade.store.storage_usage import StorageUsage

# After every identifier: where the first page of a list begins.
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


def require_id(text: str, what: str) -> str:
    """Return an id as it is stored, or raise NotFound if it is none."""
    if not is_uuid(text):
        raise NotFound(f"There is no such {what} in this workspace.")
    return text.lower()


class CatalogueReading:
    """Read documents, configurations, drafts, versions and artifacts."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find_document(
        self, workspace_id: str, document_id: str, *, deleted_too: bool = False
    ) -> Document:
        """Find a document, or raise NotFound."""
        row = self._sql.first("find_document", workspace_id, require_id(document_id, "document"))
        found = None if row is None else Document(*row)
        if found is None or not (deleted_too or found.deleted_at is None):
            raise NotFound("There is no such document in this workspace.")
        return found

    def list_documents(self, workspace_id: str, before: str | None, limit: int) -> list[Document]:
        """List documents, newest first, that are older than one."""
        found = self._sql.rows("list_documents", workspace_id, before or LAST_ID, limit)
        return [Document(*row) for row in found]

    def find_configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        """Find a configuration that was not deleted, or raise NotFound."""
        id_ = require_id(configuration_id, "configuration")
        found = self._sql.first("find_configuration", workspace_id, id_)
        if found is None:
            raise NotFound("There is no such configuration in this workspace.")
        return Configuration(*found)

    def list_configurations(
        self, workspace_id: str, before: str | None, limit: int
    ) -> list[Configuration]:
        """List configurations, newest first, that are older than one."""
        found = self._sql.rows("list_configurations", workspace_id, before or LAST_ID, limit)
        return [Configuration(*row) for row in found]

    def draft(self, configuration: Configuration) -> list[File]:
        """List the files of a draft in the order of their paths."""
        rows = self._sql.rows("list_draft", configuration.workspace_id, configuration.id)
        return sorted(File(*row) for row in rows)

    def find_version(self, workspace_id: str, version_id: str) -> Version:
        """Find a version by its id, or raise NotFound."""
        id_ = require_id(version_id, "version")
        return _version(self._sql.first("find_version", workspace_id, id_))

    def find_sequence(self, workspace_id: str, configuration_id: str, sequence: int) -> Version:
        """Find a version by its number, or raise NotFound."""
        id_ = require_id(configuration_id, "configuration")
        found = self._sql.first("find_version_by_sequence", workspace_id, id_, sequence)
        return _version(found)

    def version_of_draft(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        """Read the draft of a configuration as a version; one that is new has no sequence yet."""
        configuration = self.find_configuration(workspace_id, configuration_id)
        files = self.draft(configuration)
        named, digest = (workspace_id, configuration.id), manifest_digest(files)
        manifest = json.dumps([list(file) for file in files])
        new = Version(workspace_id, "", configuration.id, 0, digest, manifest, by, 0)
        return self._version_with(*named, digest) or new

    def list_versions(
        self, workspace_id: str, configuration_id: str, before: str | None, limit: int
    ) -> list[Version]:
        """List the versions of a configuration, newest first, that are older than one."""
        configuration = self.find_configuration(workspace_id, configuration_id)
        sequence = VERSIONS_MAX + 1
        if before is not None:
            newer = self._sql.first("find_version", workspace_id, before)
            sequence = 0 if newer is None else Version(*newer).sequence
        rows = self._sql.rows("list_versions", workspace_id, configuration.id, sequence, limit)
        return [Version(*row) for row in rows]

    def find_artifact(self, artifact_id: str) -> ArtifactRow:
        """Find an artifact of any workspace, or raise NotFound."""
        found = self._sql.first("find_artifact", require_id(artifact_id, "artifact"))
        if found is None:
            raise NotFound("There is no such artifact.")
        return ArtifactRow(*found)

    def check_bytes(self, workspace_id: str, digest: str) -> None:
        """Raise NotFound unless a document or an artifact of the workspace has these bytes.

        Knowing a digest gives no right to the bytes.
        """
        if self._sql.first("find_content", workspace_id, digest) is None:
            raise NotFound(f"This workspace has no file with the digest {digest}.")

    def _version_with(
        self, workspace_id: str, configuration_id: str, digest: str
    ) -> Version | None:
        found = self._sql.first("find_version_by_digest", workspace_id, configuration_id, digest)
        return Version(*found) if found else None


class CatalogueChanges(CatalogueReading):
    """Change documents, configurations, drafts and versions."""

    def __init__(self, sql: Executor, usage: StorageUsage, now_us: int) -> None:
        super().__init__(sql)
        self._usage = usage
        self._now_us = now_us

    def add_document(
        self,
        workspace_id: str,
        name: str,
        digest: str,
        size_bytes: int,
        content_type: str | None,
        *,
        quota_bytes: int = 0,
    ) -> Document:
        """Insert an uploaded file, or raise StorageFull if the workspace may store no more."""
        self._lock(workspace_id)
        self._usage.refuse_document(workspace_id, digest, size_bytes, quota_bytes)
        new = Document(
            workspace_id,
            id_at(self._now_us),
            name,
            digest,
            size_bytes,
            self._now_us,
            content_type,
            None,
        )
        self._sql.run("insert_document", *new)
        return new

    def delete_document(self, workspace_id: str, document_id: str) -> Document:
        """Hide a document; runs that have read it still name it."""
        document = self.find_document(workspace_id, document_id)
        self._sql.run("delete_document", workspace_id, document.id, self._now_us)
        return document

    def add_configuration(
        self, workspace_id: str, name: str, files: list[File], *, quota_bytes: int = 0
    ) -> Configuration:
        """Insert a configuration with a first draft."""
        self._lock(workspace_id)
        if self._sql.scalar("count_configurations", workspace_id) >= CONFIGURATIONS_MAX:
            raise Conflict(f"A workspace has at most {CONFIGURATIONS_MAX} configurations.")
        new = Configuration(workspace_id, id_at(self._now_us), name, self._now_us, None)
        self._check_draft(new, files, quota_bytes)
        self._sql.run("insert_configuration", *new)
        self._insert_files(new, files)
        return new

    def delete_configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        """Hide a configuration; its versions stay for the runs that name them."""
        found = self.find_configuration(workspace_id, configuration_id)
        self._sql.run("delete_configuration", workspace_id, found.id, self._now_us)
        return found

    def put_file(
        self,
        workspace_id: str,
        configuration_id: str,
        file: File,
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> bool:
        """Write one file of a draft; tell whether there was none of this path before.

        `only_if` is the digest of the file that the editor saw, or `ABSENT`.
        """
        self._lock(workspace_id)
        configuration = self.find_configuration(workspace_id, configuration_id)
        present = {known.path: known for known in self.draft(configuration)}
        before = present.get(file.path)
        _refuse_unless(only_if, before)
        draft = [*(present | {file.path: file}).values()]
        self._check_draft(configuration, draft, quota_bytes)
        self._sql.run("delete_draft_file", workspace_id, configuration.id, file.path)
        self._insert_files(configuration, [file])
        return before is None

    def delete_file(
        self, workspace_id: str, configuration_id: str, path: str, *, only_if: str | None = None
    ) -> None:
        """Take one file out of a draft, or raise NotFound."""
        self._lock(workspace_id)
        configuration = self.find_configuration(workspace_id, configuration_id)
        present = {known.path: known for known in self.draft(configuration)}
        if path not in present:
            raise NotFound("There is no such file in the draft.")
        _refuse_unless(only_if, present[path])
        self._sql.run("delete_draft_file", workspace_id, configuration.id, path)

    def replace_draft(
        self,
        workspace_id: str,
        configuration_id: str,
        files: list[File],
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> None:
        """Replace all files of a draft; `only_if` is the digest of the draft that was seen."""
        self._lock(workspace_id)
        configuration = self.find_configuration(workspace_id, configuration_id)
        if only_if not in (None, manifest_digest(self.draft(configuration))):
            raise PreconditionFailed("The draft was changed meanwhile; read it again.")
        self._check_draft(configuration, files, quota_bytes)
        self._sql.run("delete_draft", workspace_id, configuration.id)
        self._insert_files(configuration, files)

    def snapshot(self, workspace_id: str, configuration_id: str, by: str) -> Version:
        """Make a version of the draft as it is; a draft that did not change is the same version."""
        self._lock(workspace_id)
        version = self.version_of_draft(workspace_id, configuration_id, by)
        return version if version.sequence else self.ensure_version(version)

    def ensure_version(self, version: Version) -> Version:
        """Insert a version that was read from a draft, unless an equal one exists."""
        self._lock(version.workspace_id)
        named = version.workspace_id, version.configuration_id
        if (known := self._version_with(*named, version.digest)) is not None:
            return known
        sequence = (self._sql.scalar("newest_sequence", *named) or 0) + 1
        if sequence > VERSIONS_MAX:
            raise Conflict(f"A configuration has at most {VERSIONS_MAX} versions.")
        new = version._replace(id=id_at(self._now_us), sequence=sequence, created_at=self._now_us)
        self._sql.run("insert_version", *new)
        return new

    def _lock(self, workspace_id: str) -> None:
        """Let one transaction at a time change what a workspace stores."""
        self._sql.lock("lock_workspace", workspace_id)

    def _check_draft(
        self, configuration: Configuration, files: list[File], quota_bytes: int
    ) -> None:
        """Refuse a draft that clashes, is too large, or exceeds the quota of its workspace."""
        refuse_clashes(file.path for file in files)
        if len(files) > FILES_MAX:
            raise Conflict(f"A configuration has at most {FILES_MAX} files.")
        if sum(file.size_bytes for file in files) > DRAFT_BYTES_MAX:
            raise PayloadTooLarge(
                f"The files of a configuration have {DRAFT_BYTES_MAX // 1024 // 1024} MiB at most."
            )
        self._usage.refuse_draft(configuration, files, quota_bytes)

    def _insert_files(self, configuration: Configuration, files: list[File]) -> None:
        named = configuration.workspace_id, configuration.id
        self._sql.run_many("insert_draft_file", [(*named, *file, self._now_us) for file in files])


def _version(row: tuple[Any, ...] | None) -> Version:
    if row is None:
        raise NotFound("There is no such version of a configuration in this workspace.")
    return Version(*row)


def _refuse_unless(only_if: str | None, found: File | None) -> None:
    if only_if is not None and only_if != (ABSENT if found is None else found.digest):
        raise PreconditionFailed("The file was changed meanwhile; read it again.")
