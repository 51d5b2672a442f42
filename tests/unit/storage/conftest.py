"""Blobs in their own folder, and before object storage: what one must do, both must do."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.object_storage import ObjectStorage, object_storage

from ade.storage import Blobs
from ade.storage.remote_blobs import RemoteBlobs


class Keeping:
    """Hold blobs and say how old they are."""

    def __init__(self, folder: Path, storage: ObjectStorage | None) -> None:
        self.folder = folder
        self.storage = storage
        self.blobs = self.host("blobs")

    def host(self, name: str) -> Blobs:
        """Open the same blobs on a host with its own folder."""
        if self.storage is None:
            return Blobs(self.folder / "blobs")
        return Blobs(self.folder / name, RemoteBlobs(self.storage.remote()))

    def date(self, digest: str, at: float) -> None:
        """Make it so that a blob was written at another time."""
        os.utime(self.blobs.path(digest), (at, at))
        if self.storage is not None:
            self.storage.date(digest, at)

    def keep(self, content: bytes, at: float) -> str:
        """Keep bytes, as if at another time."""
        digest = self.blobs.write([content], len(content)).digest
        self.date(digest, at)
        return digest

    def files(self) -> list[Path]:
        """List every file of the folder."""
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[ObjectStorage]:
    """Start object storage."""
    with object_storage(tmp_path / "s3") as storage:
        yield storage


@pytest.fixture(params=["folder", "s3"])
def keeping(request: pytest.FixtureRequest, tmp_path: Path) -> Keeping:
    """Keep blobs in each way."""
    found = request.getfixturevalue("storage") if request.param == "s3" else None
    return Keeping(tmp_path / "here", found)


@pytest.fixture
def blobs(keeping: Keeping) -> Blobs:
    """Give blobs that nothing was kept in yet."""
    return keeping.blobs
