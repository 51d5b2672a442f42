"""What a job leaves is kept as it was collected, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.app.catalogue import Catalogue
from ade.domain.errors import Unavailable
from ade.domain.outcome import OutputFile
from ade.storage import Blobs
from ade.store.session import Session
from ade.worker.job_io import CatalogueJobIO

WORKSPACE = "a-workspace"
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def job_io(sqlite_url: str, tmp_path: Path) -> Iterator[CatalogueJobIO]:
    """Keep files below a folder of the test."""
    session = Session(sqlite_url)
    yield CatalogueJobIO(Catalogue(session), Blobs(tmp_path / "blobs"))
    session.close()


async def test_a_file_is_kept_under_its_digest(job_io: CatalogueJobIO, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"abc")
    file = OutputFile("a.csv", tmp_path / "a.csv", 3, ABC)
    (artifact,) = await job_io.keep(WORKSPACE, [file])
    assert (artifact.digest, artifact.content_type, artifact.kind) == (ABC, "text/csv", "table")
    assert job_io.blobs.read(ABC) == b"abc"


async def test_a_file_that_changed_since_it_was_collected_is_not_kept(
    job_io: CatalogueJobIO, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(b"abd")
    file = OutputFile("a.csv", tmp_path / "a.csv", 3, ABC)
    with pytest.raises(Unavailable, match=r"a\.csv changed while it was stored"):
        await job_io.keep(WORKSPACE, [file])
