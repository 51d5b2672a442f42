# Written from ade/client/aio/documents.py by scripts/write_sync_client.py; edit that instead.
"""Documents: files to work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

from ade.client.answers.catalogue import DocumentAnswer
from ade.client.core.downloads import download
from ade.client.core.exchange import call_json, request_of
from ade.client.core.names import find_id
from ade.client.core.pages import every, filters
from ade.client.core.uploads import OCTETS, FormBody, Progress, Source, name_of, upload
from ade.client.frames import frame_bytes, is_frame
from ade.client.saved_files import place_for, written_whole
from ade.client.sync.driver import Session


@dataclass(frozen=True)
class Document(DocumentAnswer):
    """An uploaded file."""

    session: Session = field(repr=False, compare=False, kw_only=True)

    def pieces(self) -> Iterator[bytes]:
        """Receive its bytes; DigestMismatch is raised at the end if they are others."""
        call = download(self._path("/content"), self.session.policy, self.digest)
        return self.session.iterate(call)

    def read(self) -> bytes:
        """Receive its bytes, checked against its digest."""
        return b"".join(list(self.pieces()))

    def download(self, path: str | PathLike[str] | None = None) -> Path:
        """Write it to a file, or into a folder under its own name; return where."""
        place = place_for(path, self.name)
        with written_whole(place) as file:
            for piece in self.pieces():
                file.write(piece)
        return place

    def preview(self, sheet: str | None = None, rows: int | None = None) -> Mapping[str, Any]:
        """Read the first rows of a sheet."""
        query = filters(sheet=sheet, rows=rows)
        request = request_of("GET", self._path("/preview"), query=query)
        found: Mapping[str, Any] = self.session.run(call_json(request, self.session.policy))
        return found

    def delete(self) -> None:
        """Delete it; runs that were submitted before still read it."""
        request = request_of("DELETE", self._path(""))
        self.session.run(call_json(request, self.session.policy))

    def refresh(self) -> Self:
        """Read what is known of it again."""
        request = request_of("GET", self._path(""))
        body = self.session.run(call_json(request, self.session.policy))
        return type(self).of(body, session=self.session)

    def _path(self, rest: str) -> str:
        return self.session.path(f"documents/{self.id}{rest}")


class Documents:
    """The documents of a workspace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def upload(
        self,
        source: Source | Any,
        *,
        name: str | None = None,
        content_type: str = OCTETS,
        on_progress: Progress | None = None,
    ) -> Document:
        """Upload a file, bytes, an open file that can seek, or a dataframe (as Parquet).

        A file is sent in pieces and never held in memory. `on_progress` is called with the bytes
        sent so far and all of them. Raise DigestMismatch if other bytes were stored.
        """
        if is_frame(source):
            source, name = frame_bytes(source), name or "frame.parquet"
        body = FormBody(source, name or name_of(source), content_type, on_progress)
        call = upload(self._session.path("documents"), body, self._session.policy)
        return self._document(self._session.run(call))

    def get(self, name_or_id: str) -> Document:
        """Read what is known of a document, by its id or its name."""
        found = self.find_id(name_or_id)
        return Document(id=found, session=self._session).refresh()

    def find_id(self, name_or_id: str) -> str:
        """Return the id of a document; raise NotFound with the nearest names."""
        path = self._session.path("documents")
        return self._session.run(find_id(path, "document", name_or_id, self._session.policy))

    def list(self, limit: int | None = None) -> Iterator[Document]:
        """List documents, newest first."""
        path, policy = self._session.path("documents"), self._session.policy
        return self._session.iterate(every(path, policy, self._document, limit=limit))

    def _document(self, body: Mapping[str, Any]) -> Document:
        return Document.of(body, session=self._session)
