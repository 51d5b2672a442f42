"""`ade gc --dry-run` lists what the collectors would delete, and nothing that they would keep."""

import os
import shutil
from pathlib import Path

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, failure

from ade.app.garbage import Garbage, find_garbage
from ade.clock import ManualClock
from ade.domain.units import DAY_SECONDS, MICROSECONDS
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.retain import Retain
from ade.storage.blobs import Blobs

KEPT_DAYS = 30
SETTINGS = KernelSettings(queue_size=0, retain_seconds=KEPT_DAYS * DAY_SECONDS)
NOON = 1_800_000_000.0
GONE = "0198c000-0000-7000-8000-000000000999"


class Site:
    """Hold a database, blobs and folders of jobs, and look for garbage at noon."""

    def __init__(self, database: SqlDatabase, clock: ManualClock, root: Path) -> None:
        self.database, self.clock = database, clock
        self.store = database.open(clock)
        self.acts = Acts(Kernel(self.store, SETTINGS), clock)
        self.blobs, self.jobs_dir = Blobs(root / "blobs"), root / "jobs"
        self.jobs_dir.mkdir()

    def dated(self, path: Path, hours: float) -> Path:
        """Date a file or folder back."""
        os.utime(path, (NOON - hours * 3600, NOON - hours * 3600))
        return path

    def folder(self, job_id: str, hours: float) -> Path:
        folder = self.jobs_dir / job_id
        folder.mkdir()
        (folder / "logs.txt").write_text("four")
        return self.dated(folder, hours)

    def found(self, days: float = KEPT_DAYS) -> list[Garbage]:
        now_us = self.clock.now_us()
        return list(
            find_garbage(self.store, self.blobs, self.jobs_dir, days, now_us=now_us, file_now=NOON)
        )


@pytest.fixture
def site(sql_database: SqlDatabase, clock: ManualClock, tmp_path: Path) -> Site:
    return Site(sql_database, clock, tmp_path)


def test_old_jobs_are_those_that_retention_deletes(site: Site) -> None:
    old = [site.acts.start() for _ in range(3)]
    for claim in old:
        site.acts.succeed(claim)
    site.acts.finish(site.acts.start(target_id="lane"), failure())  # it holds its target
    waiting = [site.acts.submit() for _ in range(2)]
    site.acts.wait((KEPT_DAYS + 1) * DAY_SECONDS)
    (young,) = site.acts.claim()
    site.acts.succeed(young)
    found = site.found()
    assert found
    assert {one.what for one in found} == {"job"}
    assert f"ended {KEPT_DAYS + 1} days ago" in found[0].reason
    assert site.found(days=0) == []
    (deleted,) = site.store.write(site.acts.kernel.verbs.retain, [Retain(WORKSPACE)])
    assert sorted(ref.id for ref in deleted) == [one.name for one in found]
    assert {one.name for one in found} == {claim.id for claim in old}
    assert site.found() == []
    assert young.id in {job.id for job in waiting}


def test_folders_of_jobs_that_are_gone(site: Site) -> None:
    job = site.acts.submit()
    site.folder(job.id, hours=5)
    gone = site.folder(GONE, hours=2)
    site.dated(site.jobs_dir, 2)
    (site.jobs_dir / "something else").mkdir()
    assert site.found() == [Garbage("job_folder", GONE, 4, "its job is gone")]
    site.dated(gone, 0.5)
    assert site.found() == []  # it is young
    shutil.rmtree(gone)


def test_blobs_that_nothing_refers_to(site: Site) -> None:
    unused, young, used = (site.blobs.write([name], 99).digest for name in (b"u", b"y", b"used"))
    for digest, hours in ((unused, 2), (young, 0.5), (used, 2)):
        site.dated(site.blobs.path(digest), hours)
    site.database.insert(
        "documents",
        workspace_id=WORKSPACE,
        id=GONE,
        name="d",
        digest=used,
        size_bytes=4,
        created_at=0,
    )
    assert site.found() == [Garbage("blob", unused, 1, "nothing refers to it")]
    in_use = site.store.read(lambda reading: reading.usage.digests_in_use())
    assert site.blobs.collect(in_use, NOON) == 1
    assert site.found() == []


def test_uploads_that_did_not_end(site: Site) -> None:
    left = site.blobs.unfinished_folder() / "tmp1"
    left.write_bytes(b"half")
    site.dated(left, 23)
    assert site.found() == []
    site.dated(left, 25)
    (one,) = site.found()
    assert (one.what, one.name, one.size_bytes) == ("upload", "tmp1", 4)


def test_the_time_of_the_database_decides(site: Site) -> None:
    claim = site.acts.start()
    site.acts.succeed(claim)
    later = site.clock.now_us() + (KEPT_DAYS + 2) * DAY_SECONDS * MICROSECONDS
    found = list(
        find_garbage(
            site.store, site.blobs, site.jobs_dir, KEPT_DAYS, now_us=int(later), file_now=NOON
        )
    )
    assert [one.name for one in found] == [claim.id]
