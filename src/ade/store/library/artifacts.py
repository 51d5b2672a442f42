"""Artifacts: the files that results name, by digest."""

from sqlalchemy import select, union

from ade.domain.errors import NotFound
from ade.store.library.holdings import Holdings
from ade.store.library.keys import key
from ade.store.rows import ArtifactRow
from ade.store.schema import artifacts, documents

_COLUMNS = [artifacts.c[name] for name in ArtifactRow._fields]


class Artifacts(Holdings):
    """Find the files that jobs left; only a job's end adds one."""

    async def find_artifact(self, artifact_id: str) -> ArtifactRow:
        """Find an artifact of any workspace, or raise NotFound."""
        wanted = select(*_COLUMNS).where(artifacts.c.id == key(artifact_id, "artifact"))
        found = await self._run(lambda: self._first(wanted), write=False)
        if found is None:
            raise NotFound("There is no such artifact.")
        return ArtifactRow(*found)

    async def check_bytes(self, workspace_id: str, digest: str) -> None:
        """Raise NotFound unless a document or an artifact of the workspace has these bytes.

        Whoever knows a digest does not have the right to its bytes.
        """
        document = select(documents.c.digest).where(
            documents.c.workspace_id == workspace_id,
            documents.c.digest == digest,
            documents.c.deleted_at.is_(None),
        )
        artifact = select(artifacts.c.digest).where(
            artifacts.c.workspace_id == workspace_id, artifacts.c.digest == digest
        )
        wanted = union(document, artifact)
        if await self._run(lambda: self._first(wanted), write=False) is None:
            raise NotFound(f"This workspace has no file with the digest {digest}.")

    def _artifact_digests(self) -> set[str]:
        return {str(row[0]) for row in self._rows(select(artifacts.c.digest).distinct())}
