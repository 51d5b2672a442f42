"""A blob's bytes are on disk before its name is, and its name before anyone is told of it."""

import os
from pathlib import Path

import pytest

from ade.storage import Blobs

Step = tuple[str, str]


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Record what is brought to disk and what gets its name, in order; both still happen."""
    steps: list[Step] = []
    fsync, replace = os.fsync, Path.replace

    def recording_fsync(descriptor: int) -> None:
        steps.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def recording_replace(path: Path, target: Path) -> Path:
        steps.append(("rename", str(path)))
        steps.append(("named", str(target)))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(Path, "replace", recording_replace)
    return steps


def test_bytes_come_to_disk_before_their_name_and_the_name_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = Blobs(tmp_path / "blobs")
    steps = recorded(monkeypatch)
    place = blobs.path(blobs.write([b"abc"], 3).digest)
    renamed = next(at for at, (what, _) in enumerate(steps) if what == "rename")
    assert ("fsync", steps[renamed][1]) in steps[:renamed], "the bytes"
    assert ("fsync", str(place.parent.parent)) in steps[:renamed], "the name of a new folder"
    assert ("fsync", str(place.parent)) in steps[renamed:], "the name of the blob"


def test_the_folder_of_a_blob_that_is_there_comes_to_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = Blobs(tmp_path / "blobs")
    digest = blobs.write([b"abc"], 3).digest
    steps = recorded(monkeypatch)
    blobs.write([b"abc"], 3)
    assert steps == [("fsync", str(blobs.path(digest).parent))]
