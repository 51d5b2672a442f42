"""A backup is the state of one moment with all of its blobs, and comes back as it was."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.databases import WORKSPACE, SqlDatabase, empty_postgres, postgres_programs
from tests.store.acts import Acts

from ade.app.backup import (
    BLOBS,
    DIGESTS,
    MANIFEST,
    BackedUp,
    back_up,
    generations,
    read_digests,
    read_manifest,
)
from ade.app.database_check import check_database
from ade.app.restore import choose_generation, restore, verify
from ade.clock import ManualClock
from ade.domain.errors import Conflict, NotFound, StorageFull, Unavailable
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.storage.blobs import Blobs
from ade.store import backup as database_backup
from ade.store.session import Session

pytestmark = pytest.mark.slow

MORNING = datetime(2026, 3, 1, 4, tzinfo=UTC)


class Site:
    """Hold a database with jobs and documents, its blobs, and a folder of backups."""

    def __init__(self, database: SqlDatabase, folder: Path, clock: ManualClock) -> None:
        self.database, self.clock = database, clock
        self.blobs = Blobs(folder / "blobs")
        self.folder = folder / "backups"
        self.store = database.open(clock)
        self.acts = Acts(Kernel(self.store, KernelSettings(queue_size=0)), clock)
        self.documents = 0
        self.backups = 0

    def add_document(self, content: bytes) -> str:
        digest = self.blobs.write([content], 1 << 20).digest
        self.insert_document(digest)
        return digest

    def insert_document(self, digest: str) -> None:
        self.documents += 1
        self.database.insert(
            "documents",
            workspace_id=WORKSPACE,
            id=f"0198d000-0000-7000-8000-{self.documents:012d}",
            name="d",
            digest=digest,
            size_bytes=1,
            created_at=0,
        )

    def delete_documents(self) -> None:
        with self.database.connect() as connection:
            connection.exec_driver_sql("DELETE FROM documents")

    def back_up(self, keep: int = 7) -> BackedUp:
        self.backups += 1
        now = MORNING + timedelta(days=self.backups)
        return back_up(self.database.url, self.blobs, self.folder, keep=keep, now=now)


@pytest.fixture
def site(
    sql_database: SqlDatabase,
    tmp_path: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Site:
    monkeypatch.setenv("PATH", postgres_programs())
    return Site(sql_database, tmp_path, clock)


@pytest.fixture
def empty_url(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Name a database of the same kind that is empty or does not exist."""
    if site.database.name == "sqlite":
        yield f"sqlite:///{tmp_path}/elsewhere/ade.db"
    else:
        with empty_postgres(request.getfixturevalue("postgres_server")) as url:
            yield url


def test_what_is_restored_is_what_was_backed_up(
    site: Site, empty_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    digests = {site.add_document(os.urandom(100)) for _ in range(3)}
    jobs = [site.acts.submit() for _ in range(5)]
    made = site.back_up()
    assert (made.blobs_copied, made.manifest.blobs, made.manifest.missing) == (3, 3, [])
    site.acts.submit()  # too late for the backup

    blobs = Blobs(tmp_path / "restored")
    done = restore(empty_url, blobs, choose_generation(site.folder))
    assert done.blobs_copied == 3
    assert set(blobs.digests()) == digests
    restored = Session(empty_url, clock=clock)
    try:
        found = restored.read(lambda reading: reading.list_jobs(WORKSPACE, {}, None, 100))
        assert [job.id for job in found] == sorted((job.id for job in jobs), reverse=True)
        assert list(check_database(restored, blob_path=blobs.path)) == []
        acts = Acts(Kernel(restored, KernelSettings(queue_size=0)), clock)
        assert len(acts.claim(limit=10)) == 5  # and work goes on
    finally:
        restored.close()


def test_a_second_run_copies_new_blobs_only(site: Site) -> None:
    site.add_document(b"first")
    first = site.back_up()
    site.add_document(b"second")
    second = site.back_up()
    assert (first.blobs_copied, second.blobs_copied, second.manifest.blobs) == (1, 1, 2)
    assert generations(site.folder) == [first.folder, second.folder]
    assert choose_generation(site.folder) == second.folder
    assert choose_generation(site.folder, first.folder.name) == first.folder
    with pytest.raises(NotFound, match=second.folder.name):
        choose_generation(site.folder, "yesterday")


def test_old_backups_go_with_their_blobs(site: Site) -> None:
    old = site.add_document(b"old")
    site.back_up()
    site.delete_documents()
    new = site.add_document(b"new")
    site.back_up(keep=2)
    assert set(Blobs(site.folder / BLOBS).digests()) == {old, new}
    last = site.back_up(keep=1)
    assert last.generations_deleted == 2
    assert generations(site.folder) == [last.folder]
    assert set(Blobs(site.folder / BLOBS).digests()) == {new}
    verify(last.folder)


def test_a_blob_that_goes_meanwhile_is_in_no_backup(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is in the first copy of the database; by then, retention has taken the bytes."""
    copy, copies = database_backup.copy_to_folder, 0

    def copy_and_collect(url: str, folder: Path) -> database_backup.DatabaseCopy:
        nonlocal copies
        copies += 1
        if copies > 1:
            return copy(url, folder)
        gone = site.add_document(b"short-lived")
        copied = copy(url, folder)
        assert gone in copied.digests
        site.delete_documents()
        site.blobs.delete(gone)
        return copied

    monkeypatch.setattr(database_backup, "copy_to_folder", copy_and_collect)
    made = site.back_up()
    assert (copies, made.manifest.blobs, made.manifest.missing) == (2, 0, [])


@pytest.mark.parametrize("damage", [None, b"other bytes"])
def test_lost_blobs_are_named(site: Site, damage: bytes | None) -> None:
    lost = site.add_document(b"these bytes")
    path = site.blobs.path(lost)
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    made = site.back_up()
    assert made.manifest.missing == [lost]
    assert verify(made.folder) == made.manifest  # what is there is right


def test_what_is_no_digest_is_lost(site: Site) -> None:
    site.insert_document("sha256:d")
    assert site.back_up().manifest.missing == ["sha256:d"]


def test_nothing_is_overwritten(site: Site, tmp_path: Path) -> None:
    site.back_up()
    with pytest.raises(Conflict, match="overwrites nothing"):
        restore(site.database.url, site.blobs, choose_generation(site.folder))
    assert site.acts.submit()


def test_a_damaged_blob_of_the_target_is_not_overwritten(
    site: Site, empty_url: str, tmp_path: Path
) -> None:
    digest = site.add_document(b"right")
    blobs = Blobs(tmp_path / "restored")
    blobs.path(digest).parent.mkdir(parents=True)
    blobs.path(digest).write_bytes(b"wrong")
    made = site.back_up()
    with pytest.raises(Conflict, match="is damaged"):
        restore(empty_url, blobs, made.folder)
    assert blobs.path(digest).read_bytes() == b"wrong"
    database_backup.refuse_unless_empty(empty_url)  # an interrupted restore can be run again


def _damage_database(generation: Path) -> None:
    [path] = generation.glob("ade.*")
    with path.open("r+b") as file:
        file.seek(5000)
        file.write(b"xxxx")


def _damage_blob(generation: Path) -> None:
    path = Blobs(generation.parent / BLOBS).path(read_digests(generation)[0])
    path.chmod(0o600)
    path.write_bytes(b"other")


def _lose_blob(generation: Path) -> None:
    Blobs(generation.parent / BLOBS).path(read_digests(generation)[0]).unlink()


def _shorten_list(generation: Path) -> None:
    (generation / DIGESTS).write_text("")


def _from_later_version(generation: Path) -> None:
    manifest = json.loads((generation / MANIFEST).read_text())
    (generation / MANIFEST).write_text(json.dumps(manifest | {"revision": "9999_later"}))


def _other_format(generation: Path) -> None:
    manifest = json.loads((generation / MANIFEST).read_text())
    (generation / MANIFEST).write_text(json.dumps(manifest | {"format": 2}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_damage_database, "missing or damaged"),
        (_damage_blob, "1 blobs"),
        (_lose_blob, "1 blobs"),
        (_shorten_list, "missing or damaged"),
        (_from_later_version, "does not know"),
        (_other_format, "format"),
    ],
)
def test_a_backup_that_is_not_right_is_not_restored(
    site: Site, empty_url: str, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    site.add_document(b"content")
    made = site.back_up()
    damage(made.folder)
    with pytest.raises(Unavailable, match=said):
        restore(empty_url, Blobs(tmp_path / "restored"), made.folder)
    database_backup.refuse_unless_empty(empty_url)


def test_a_backup_that_was_interrupted_is_none(site: Site) -> None:
    made = site.back_up()
    made.folder.rename(site.folder / "unfinished")
    assert generations(site.folder) == []
    with pytest.raises(NotFound):
        choose_generation(site.folder)
    assert read_manifest(site.back_up().folder).blobs == 0


def test_a_failed_backup_leaves_the_last_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = site.back_up()

    def fail(url: str, folder: Path) -> database_backup.DatabaseCopy:
        raise StorageFull("The disk is full.")

    monkeypatch.setattr(database_backup, "copy_to_folder", fail)
    with pytest.raises(StorageFull):
        site.back_up()
    assert generations(site.folder) == [kept.folder]
    assert not (site.folder / "unfinished").exists()


def test_a_database_without_tables_is_not_backed_up(site: Site, empty_url: str) -> None:
    if site.database.name == "sqlite":
        with pytest.raises(Unavailable, match="no database"):
            back_up(empty_url, site.blobs, site.folder)
    else:
        with pytest.raises(Unavailable, match="no tables"):
            back_up(empty_url, site.blobs, site.folder)


def test_programs_of_postgres_that_are_missing(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="pg_dump is not on the PATH"):
        back_up(postgres_url, Blobs(tmp_path / "blobs"), tmp_path / "backups")
    assert generations(tmp_path / "backups") == []


def test_a_pg_dump_that_fails_says_why(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(
        "#!/bin/sh\necho 'aborting because of server version mismatch' >&2\nexit 1\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Unavailable, match="server version mismatch"):
        back_up(postgres_url, Blobs(tmp_path / "blobs"), tmp_path / "backups")
    assert generations(tmp_path / "backups") == []
