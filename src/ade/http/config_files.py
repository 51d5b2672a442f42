"""Receive, store and send the files of configurations: archives, templates, single files."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ade.domain.configuration import DRAFT_BYTES_MAX, FILES_MAX, manifest_digest
from ade.http.download import SAFE, has_already
from ade.http.multipart import MULTIPART, PIECE_BYTES, receive_form, receive_raw
from ade.storage import Blobs, BlobWriter
from ade.storage.package_archives import (
    ARCHIVE_BYTES_MAX,
    FILE_BYTES_MAX,
    folder_package,
    read_package,
    write_package,
)
from ade.store.rows import File
from ade_engine.examples import FOLDER, example_names

ZIP_TYPE = "application/zip"
ZIP = {ZIP_TYPE: {"schema": {"type": "string", "format": "binary"}}}
ARCHIVE_TYPES = (ZIP_TYPE, "application/x-zip-compressed", "application/octet-stream")


class ConfigurationFiles:
    """Store and send the files of configurations."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.templates = example_names()

    async def template(self, name: str) -> dict[str, bytes]:
        """Read a template that exists."""
        return await asyncio.to_thread(folder_package, FOLDER / name)

    async def keep(self, files: Mapping[str, bytes]) -> list[File]:
        """Store files, each as a blob."""
        return await asyncio.to_thread(self._blobs.concurrently, self._keep, files.items())

    def _keep(self, file: tuple[str, bytes]) -> File:
        path, content = file
        blob = self._blobs.write([content], FILE_BYTES_MAX)
        return File(path, blob.digest, blob.size_bytes)

    async def read(self, file: File) -> bytes:
        """Read one file."""
        return await asyncio.to_thread(self._blobs.read, file.digest)

    async def receive_file(self, request: Request, path: str) -> File:
        """Store a request's body as one file."""
        with await asyncio.to_thread(self._blobs.begin, FILE_BYTES_MAX) as writing:
            await receive_raw(request, writing)
            blob = await asyncio.to_thread(writing.keep)
        return File(path, blob.digest, blob.size_bytes)

    async def receive(self, request: Request) -> list[File]:
        """Store the files of an archive, sent as the body or as the part `file` of a form."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (MULTIPART, *ARCHIVE_TYPES):
            raise HTTPException(415, f"Send a zip archive: Content-Type: {ZIP_TYPE}.")
        with await asyncio.to_thread(self._blobs.begin, ARCHIVE_BYTES_MAX) as writing:
            if kind == MULTIPART:
                await receive_form(request, writing)
            else:
                await receive_raw(request, writing)
            return await asyncio.to_thread(self._unpack, writing)

    def _unpack(self, writing: BlobWriter) -> list[File]:
        with writing.so_far() as file:
            found = read_package(file, files_max=FILES_MAX, bytes_max=DRAFT_BYTES_MAX)
            return self._blobs.concurrently(self._keep, found)

    async def send(self, request: Request, files: list[File], name: str) -> Response:
        """Respond with an archive of files."""
        digest = manifest_digest(files)
        headers = {**SAFE, "ETag": f'"{digest}"'}
        if has_already(request, f'"{digest}"'):
            return Response(status_code=304, headers=headers)
        file = await asyncio.to_thread(self._pack, files)
        headers["Content-Length"] = str(file.seek(0, 2))
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
        file.seek(0)
        return StreamingResponse(_pieces(file), headers=headers, media_type=ZIP_TYPE)

    def _pack(self, files: list[File]) -> BinaryIO:
        """Write an archive to an unnamed file, which is deleted when it is closed."""
        digests = {file.path: file.digest for file in files}
        self._blobs.concurrently(self._blobs.existing, digests.values())
        packed: Any = tempfile.TemporaryFile(dir=self._blobs.unfinished_folder())  # noqa: SIM115
        try:
            write_package(packed, digests, lambda name: self._blobs.read(digests[name]))
        except BaseException:
            packed.close()
            raise
        found: BinaryIO = packed
        return found

    def paths(self, files: list[File], below: str) -> dict[str, Path]:
        """Return the paths of files, by the names under which a sandbox shows them."""
        paths = self._blobs.concurrently(self._blobs.existing, [file.digest for file in files])
        return {f"{below}/{file.path}": path for file, path in zip(files, paths, strict=True)}


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
