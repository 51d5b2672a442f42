"""Documents: uploaded files, by digest."""

from typing import NamedTuple

from sqlalchemy import and_, insert, select, update

from ade.clock import new_id
from ade.domain.errors import NotFound
from ade.store.library.holdings import Holdings
from ade.store.library.keys import key
from ade.store.schema import documents, jobs, requests
from ade.store.statements import Statement
from ade.store.statements.parts import same_row

FIND = Statement(
    lambda d, g: select(documents).where(
        documents.c.workspace_id == g["workspace_id"], documents.c.id == g["id"]
    ),
    ("workspace_id", "id"),
    many=False,
)


class Document(NamedTuple):
    """Hold an uploaded file."""

    workspace_id: str
    id: str
    name: str
    digest: str
    size_bytes: int
    created_at: int
    content_type: str | None
    deleted_at: int | None


class Documents(Holdings):
    """Read and change documents."""

    async def add_document(
        self,
        workspace_id: str,
        name: str,
        digest: str,
        size_bytes: int,
        content_type: str | None,
        *,
        quota_bytes: int = 0,
    ) -> Document:
        """Remember an uploaded file, or raise StorageFull if the workspace may keep no more."""
        new = Document(
            workspace_id,
            new_id(self._clock),
            name,
            digest,
            size_bytes,
            self._clock.now_us(),
            content_type,
            None,
        )
        await self._run(lambda: self._add_document(new, quota_bytes))
        return new

    def _add_document(self, new: Document, quota_bytes: int) -> None:
        self._begin_to_store(new.workspace_id)
        self._do(insert(documents).values(new._asdict()))
        self._refuse_above(new.workspace_id, quota_bytes)

    async def find_document(
        self, workspace_id: str, document_id: str, *, deleted_too: bool = False
    ) -> Document:
        """Find a document, or raise NotFound."""
        return await self._run(
            lambda: self._document(workspace_id, document_id, deleted_too=deleted_too), write=False
        )

    def _document(
        self, workspace_id: str, document_id: str, *, deleted_too: bool = False
    ) -> Document:
        row = self._first_known(FIND, workspace_id, key(document_id, "document"))
        found = None if row is None else Document(*row)
        if found is None or not (deleted_too or found.deleted_at is None):
            raise NotFound("There is no such document in this workspace.")
        return found

    async def list_documents(
        self, workspace_id: str, *, before: str | None, limit: int
    ) -> list[Document]:
        """List documents, newest first, from one on."""
        wanted = select(documents).where(
            documents.c.workspace_id == workspace_id, documents.c.deleted_at.is_(None)
        )
        if before is not None:
            wanted = wanted.where(documents.c.id < before)
        wanted = wanted.order_by(documents.c.id.desc()).limit(limit)
        return [Document(*row) for row in await self._run(lambda: self._rows(wanted), write=False)]

    async def delete_document(self, workspace_id: str, document_id: str) -> None:
        """Put a document out of sight; runs that have read it still name it."""
        document = await self.find_document(workspace_id, document_id)
        gone = (
            update(documents)
            .where(documents.c.workspace_id == workspace_id, documents.c.id == document.id)
            .values(deleted_at=self._clock.now_us())
        )
        await self._run(lambda: self._do(gone))

    def _document_digests(self) -> set[str]:
        alive = select(documents.c.digest).where(documents.c.deleted_at.is_(None))
        found = {str(row[0]) for row in self._rows(alive)}
        # A run that has not read its document yet still needs it.
        waiting = (
            select(documents.c.digest)
            .select_from(
                documents.join(
                    requests,
                    and_(
                        requests.c.workspace_id == documents.c.workspace_id,
                        requests.c.document_id == documents.c.id,
                    ),
                ).join(jobs, same_row())
            )
            .where(documents.c.deleted_at.is_not(None), jobs.c.finished_at.is_(None))
        )
        found |= {str(row[0]) for row in self._rows(waiting)}
        return found
