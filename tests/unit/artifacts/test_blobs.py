"""Bytes by digest: there whole or not at all, and collected when nobody wants them."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.artifacts import Blobs
from ade.artifacts.blobs import ABANDONED_SECONDS, YOUNG_SECONDS
from ade.domain.errors import NotFound, PayloadTooLarge, StorageFull

NOW = 2_000_000_000.0
OLD = NOW - YOUNG_SECONDS - 1


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    """Make an empty folder of blobs."""
    return Blobs(tmp_path / "blobs")


def files(folder: Path) -> list[Path]:
    """List every file."""
    return [path for path in folder.rglob("*") if path.is_file()]


def keep(blobs: Blobs, content: bytes, at: float = NOW) -> str:
    """Keep bytes, as if at another time."""
    digest = blobs.write([content], len(content)).digest
    os.utime(blobs.path(digest), (at, at))
    return digest


def test_bytes_are_kept_under_their_digest(blobs: Blobs, tmp_path: Path) -> None:
    blob = blobs.write([b"ab", b"", b"c"], 3)
    assert blob.digest == "sha256:" + hashlib.sha256(b"abc").hexdigest()
    assert blob.size_bytes == 3
    assert blobs.read(blob.digest) == b"abc"
    assert blobs.write([b"abc"], 3) == blob
    assert files(tmp_path) == [blobs.path(blob.digest)]
    assert blobs.path(blob.digest).stat().st_mode & 0o777 == 0o400


def test_what_is_not_kept_is_gone(blobs: Blobs, tmp_path: Path) -> None:
    with pytest.raises(PayloadTooLarge):
        blobs.write([b"ab", b"cd"], 3)

    def broken() -> Iterator[bytes]:
        yield b"ab"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blobs.write(broken(), 3)
    assert files(tmp_path) == []


def test_a_full_disk_is_said(blobs: Blobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        blobs.write([b"abc"], 3)
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["", "sha256:", "../../etc/passwd", "sha256:" + "A" * 64, "md5:1"])
def test_what_is_no_digest_is_no_path(blobs: Blobs, name: str) -> None:
    with pytest.raises(ValueError, match="no digest"):
        blobs.path(name)


def test_a_blob_has_a_name_without_the_paths_of_a_machine(blobs: Blobs) -> None:
    blob = blobs.write([b"abc"], 3)
    assert blobs.uri(blob.digest) == f"blob:{blob.digest}"
    with pytest.raises(ValueError, match="no digest"):
        blobs.uri("../../etc/passwd")


def test_missing_bytes_are_not_found(blobs: Blobs) -> None:
    with pytest.raises(NotFound):
        blobs.read("sha256:" + "0" * 64)
    blobs.delete("sha256:" + "0" * 64)


def test_only_what_is_old_and_unused_is_collected(blobs: Blobs) -> None:
    young, used, old = keep(blobs, b"1"), keep(blobs, b"2", OLD), keep(blobs, b"3", OLD)
    assert blobs.collect({used}, NOW) == 1
    assert sorted(blobs.digests()) == sorted([young, used])
    assert not blobs.has(old)


def test_writing_the_same_bytes_again_saves_them(blobs: Blobs) -> None:
    digest = keep(blobs, b"1", OLD)
    blobs.write([b"1"], 1)
    assert blobs.path(digest).stat().st_mtime != OLD
    assert blobs.collect(set(), blobs.path(digest).stat().st_mtime + 1) == 0


def test_bytes_that_become_young_while_they_are_collected_are_put_back(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = keep(blobs, b"1", OLD)
    rename = Path.rename

    def meanwhile(self: Path, target: Path) -> Path:
        os.utime(self, (NOW, NOW))  # someone writes the same bytes just now
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", meanwhile)
    assert blobs.collect(set(), NOW) == 0
    assert blobs.read(digest) == b"1"


def test_bytes_that_are_written_anew_while_they_are_collected_stay(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = keep(blobs, b"1", OLD)
    rename = Path.rename

    def meanwhile(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        monkeypatch.setattr(Path, "rename", rename)
        blobs.write([b"1"], 1)
        return moved

    monkeypatch.setattr(Path, "rename", meanwhile)
    blobs.collect(set(), NOW)
    assert blobs.read(digest) == b"1"


def test_what_a_dead_process_left_is_removed_after_a_day(blobs: Blobs, tmp_path: Path) -> None:
    writing = [blobs.begin(9), blobs.begin(9)]
    for begun in writing:
        begun.add(b"x")
    left, going_on = files(tmp_path)
    os.utime(left, (NOW - ABANDONED_SECONDS - 1,) * 2)
    os.utime(going_on, (NOW - YOUNG_SECONDS - 1,) * 2)
    blobs.collect(set(), NOW)
    assert files(tmp_path) == [going_on]
    for begun in writing:
        begun.__exit__()
