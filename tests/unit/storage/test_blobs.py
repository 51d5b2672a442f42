"""Bytes by digest: present as a whole or not at all, and collected when unused."""

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.storage.conftest import Keeping

from ade.domain.errors import NotFound, PayloadTooLarge, StorageFull
from ade.storage import Blobs
from ade.storage.blobs import ABANDONED_SECONDS, YOUNG_SECONDS
from ade.storage.remote_blobs import OLD_SECONDS

NOW = float(int(time.time()))
OLD = NOW - max(YOUNG_SECONDS, OLD_SECONDS) - 1
NOBODYS = "sha256:" + "0" * 64


def test_bytes_are_kept_under_their_digest(keeping: Keeping, blobs: Blobs) -> None:
    blob = blobs.write([b"ab", b"", b"c"], 3)
    assert blob.digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()
    assert blob.size_bytes == 3
    assert blobs.read(blob.digest) == b"abc"
    assert blobs.write([b"abc"], 3) == blob
    assert keeping.files() == [blobs.path(blob.digest)]
    assert blobs.path(blob.digest).stat().st_mode & 0o777 == 0o400
    assert blobs.read(blobs.write([], 0).digest) == b""


def test_what_is_not_kept_is_gone(keeping: Keeping, blobs: Blobs) -> None:
    with pytest.raises(PayloadTooLarge):
        blobs.write([b"ab", b"cd"], 3)

    def broken() -> Iterator[bytes]:
        yield b"ab"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blobs.write(broken(), 3)
    assert keeping.files() == []
    assert list(blobs.digests()) == []


def test_a_full_disk_is_said(
    keeping: Keeping, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        blobs.write([b"abc"], 3)
    assert keeping.files() == []


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, bool]]:
    """Note what is brought to disk, and whether the blob has its name by then."""
    found: list[tuple[Path, bool]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        found.append((path, path.is_dir() and any(path.glob("[0-9a-f]" * 64))))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return found


def test_the_bytes_are_on_disk_before_they_have_their_name(
    blobs: Blobs, synced: list[tuple[Path, bool]]
) -> None:
    place = blobs.path(blobs.write([b"abc"], 3).digest)
    path, _ = synced[0]
    assert path.parent == blobs.unfinished_folder()
    assert not path.exists()  # it has its name now
    assert place.exists()


def test_the_name_is_on_disk_when_the_blob_is_kept(
    blobs: Blobs, synced: list[tuple[Path, bool]]
) -> None:
    place = blobs.path(blobs.write([b"abc"], 3).digest)
    assert synced[-1] == (place.parent, True)
    assert (place.parent.parent, False) in synced  # and so is the folder that holds it
    synced.clear()
    blobs.write([b"abc"], 3)  # the first writer may not have got this far yet
    assert synced == [(place.parent, True)]


@pytest.mark.parametrize("name", ["", "sha256:", "../../etc/passwd", "sha256:" + "A" * 64, "md5:1"])
def test_what_is_no_digest_is_no_path(blobs: Blobs, name: str) -> None:
    for look in (blobs.path, blobs.existing, blobs.uri):
        with pytest.raises(ValueError, match="not a digest"):
            look(name)


def test_a_blob_has_a_name_without_the_paths_of_a_machine(keeping: Keeping, blobs: Blobs) -> None:
    blob = blobs.write([b"abc"], 3)
    name = blob.digest.partition(":")[2]
    if keeping.storage is None:
        assert blobs.uri(blob.digest) == f"blob:{blob.digest}"
    else:
        url = f"{keeping.storage.url}/sha256/{name[:2]}/{name}"
        assert blobs.uri(blob.digest) == url


def test_missing_bytes_are_not_found(blobs: Blobs) -> None:
    for look in (blobs.read, blobs.existing, blobs.open):
        with pytest.raises(NotFound):
            look(NOBODYS)
    assert not blobs.has(NOBODYS)
    blobs.delete(NOBODYS)


def test_deleted_bytes_are_gone(blobs: Blobs) -> None:
    digest = blobs.write([b"abc"], 3).digest
    blobs.delete(digest)
    assert not blobs.has(digest)
    assert list(blobs.digests()) == []
    with pytest.raises(NotFound):
        blobs.existing(digest)


def test_another_process_finds_what_was_kept(keeping: Keeping, blobs: Blobs) -> None:
    digest = blobs.write([b"abc"], 3).digest
    other = keeping.host("other")
    assert other.has(digest)
    assert list(other.digests()) == [digest]
    assert other.existing(digest).read_bytes() == b"abc"
    other.delete(digest)
    assert not keeping.host("third").has(digest)


def test_many_may_keep_and_read_the_same_bytes_at_once(keeping: Keeping) -> None:
    content = os.urandom(300_000)
    hosts = [keeping.host("one"), keeping.host("two")]
    together = threading.Barrier(8)

    def keep_and_read(number: int) -> bytes:
        together.wait()
        host = hosts[number % 2]
        return host.read(host.write([content], len(content)).digest)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(keep_and_read, range(8))) == {content}
    assert len(list(hosts[0].digests())) == 1


def test_what_is_done_abreast_comes_in_order_and_its_errors_come_out(blobs: Blobs) -> None:
    contents = [bytes([n]) for n in range(20)]
    kept = blobs.concurrently(lambda one: blobs.write([one], 1).digest, contents)
    assert [blobs.read(digest) for digest in kept] == contents
    with pytest.raises(NotFound):
        blobs.concurrently(blobs.existing, [*kept, NOBODYS])


def test_only_what_is_old_and_unused_is_collected(keeping: Keeping, blobs: Blobs) -> None:
    young, used = keeping.keep(b"1", NOW), keeping.keep(b"2", OLD)
    old = keeping.keep(b"3", OLD)
    assert blobs.collect({used}, NOW) == 1
    assert sorted(blobs.digests()) == sorted([young, used])
    assert not blobs.has(old)


def test_writing_the_same_bytes_again_saves_them(keeping: Keeping, blobs: Blobs) -> None:
    digest = keeping.keep(b"1", OLD)
    blobs.write([b"1"], 1)
    assert blobs.path(digest).stat().st_mtime != OLD
    assert blobs.collect(set(), time.time()) == 0
    assert blobs.read(digest) == b"1"


def test_bytes_that_become_young_while_they_are_collected_are_put_back(
    keeping: Keeping, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = keeping.keep(b"1", OLD)
    rename = Path.rename

    def meanwhile(self: Path, target: Path) -> Path:
        keeping.date(digest, NOW)  # someone writes the same bytes just now
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", meanwhile)
    assert blobs.collect(set(), NOW) == 0
    assert blobs.path(digest).read_bytes() == b"1"


def test_bytes_that_are_written_anew_while_they_are_collected_stay(
    keeping: Keeping, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = keeping.keep(b"1", OLD)
    rename = Path.rename

    def meanwhile(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        monkeypatch.setattr(Path, "rename", rename)
        blobs.write([b"1"], 1)
        return moved

    monkeypatch.setattr(Path, "rename", meanwhile)
    blobs.collect(set(), NOW)
    assert blobs.path(digest).read_bytes() == b"1"
    assert blobs.has(digest)


def test_what_a_dead_process_left_is_removed_after_a_day(keeping: Keeping, blobs: Blobs) -> None:
    writing = [blobs.begin(9), blobs.begin(9)]
    for begun in writing:
        begun.add(b"x")
    left, going_on = keeping.files()
    os.utime(left, (NOW - ABANDONED_SECONDS - 1,) * 2)
    os.utime(going_on, (NOW - YOUNG_SECONDS - 1,) * 2)
    blobs.collect(set(), NOW)
    assert keeping.files() == [going_on]
    for begun in writing:
        begun.__exit__()
