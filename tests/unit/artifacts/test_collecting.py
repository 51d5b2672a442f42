"""The blobs that the library refers to stay; the others go."""

import time
from pathlib import Path

from tests.databases import WORKSPACE

from ade.artifacts import Blobs
from ade.artifacts.collecting import collect_blobs
from ade.store.library import File, Library

LATER_SECONDS = 7200


async def test_what_is_referred_to_stays(sqlite_url: str, tmp_path: Path) -> None:
    blobs, library = Blobs(tmp_path), Library(sqlite_url)
    try:
        written = [blobs.write([bytes([n])], 1) for n in range(4)]
        document, draft, version, nobodys = (blob.digest for blob in written)
        added = await library.add_document(WORKSPACE, "d", document, 1, None)
        made = await library.add_configuration(WORKSPACE, "c", [File("a", version, 1)])
        await library.snapshot(WORKSPACE, made.id, "me")
        await library.put_file(WORKSPACE, made.id, File("a", draft, 1))
        assert await collect_blobs(blobs, library) == 0
        assert await collect_blobs(blobs, library, time.time() + LATER_SECONDS) == 1
        assert not blobs.has(nobodys)
        await library.delete_document(WORKSPACE, added.id)
        await library.delete_configuration(WORKSPACE, made.id)
        assert await collect_blobs(blobs, library, time.time() + LATER_SECONDS) == 3
    finally:
        library.close()
