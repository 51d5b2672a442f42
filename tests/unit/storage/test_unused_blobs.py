"""The blobs that the library refers to stay; the others go."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.processes import aeventually

from ade.app.catalogue import Catalogue
from ade.domain.errors import Unavailable
from ade.storage import Blobs, unused_blobs
from ade.storage.remote_blobs import OLD_SECONDS
from ade.storage.unused_blobs import collect_blobs
from ade.store.rows import File
from ade.store.session import Session

LATER_SECONDS = OLD_SECONDS + 60


async def test_what_is_referred_to_stays(sqlite_url: str, blobs: Blobs) -> None:
    session = Session(sqlite_url)
    library = Catalogue(session)
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
        session.close()


async def test_collecting_goes_on_after_trouble(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(sqlite_url)
    library = Catalogue(session)
    blobs = Blobs(tmp_path)
    digest = blobs.write([b"x"], 1).digest
    os.utime(blobs.path(digest), (1, 1))
    asked = 0

    async def troubled(self: Catalogue) -> set[str]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise Unavailable("The database cannot be reached.")
        return set()

    monkeypatch.setattr(Catalogue, "digests_in_use", troubled)
    for name in ("FIRST_SECONDS", "EVERY_SECONDS", "REST_SHARE"):
        monkeypatch.setattr(unused_blobs, name, 0)
    loop = asyncio.create_task(unused_blobs.collect_for_ever(blobs, library))
    await aeventually(lambda: not blobs.has(digest))
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    session.close()


async def test_nothing_is_collected_just_after_a_step_of_the_clock(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The date of a young blob may then say that it is old."""
    blobs = Blobs(tmp_path)
    digest = blobs.write([b"young"], 5).digest
    os.utime(blobs.path(digest), (0, 0))
    steady = [0.0, OLD_SECONDS / 2, OLD_SECONDS + 1]
    asked_after: list[float] = []

    class Stepped:
        def steady_seconds(self) -> float:
            assert blobs.has(digest)
            asked_after.append(steady[len(asked_after)])
            return asked_after[-1]

    monkeypatch.setattr(unused_blobs, "FileClock", Stepped)
    for name in ("FIRST_SECONDS", "EVERY_SECONDS", "REST_SHARE"):
        monkeypatch.setattr(unused_blobs, name, 0)
    session = Session(sqlite_url)
    loop = asyncio.create_task(unused_blobs.collect_for_ever(blobs, Catalogue(session)))
    await aeventually(lambda: not blobs.has(digest))
    assert asked_after[:3] == steady
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    session.close()
