"""Files are taken out of a job's folder without following, waiting, or taking too much."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.sandbox.outputs import DEPTH_MAX, ENTRIES_MAX, CollectedFiles, collect


class Job:
    """Hold a job's folder and where its files go."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        self.folder = folder
        self.target = target
        self.opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def collect(self, *, files_max: int = 50, bytes_max: int = 1 << 20) -> CollectedFiles:
        """Collect with bounds."""
        return collect(
            self.opened, "artifacts", self.target, files_max=files_max, bytes_max=bytes_max
        )


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Make a job's folder."""
    found = Job(tmp_path / "job", tmp_path / "target")
    yield found
    os.close(found.opened)
    # pytest's own way of removing folders does not come back from deep ones.
    subprocess.run(["/bin/rm", "-rf", str(found.folder)], check=True)


def _names(collected: CollectedFiles) -> list[str]:
    return [file.name for file in collected.files]


def test_ordinary_files_are_taken_with_size_and_digest(job: Job) -> None:
    (job.artifacts / "inner").mkdir()
    (job.artifacts / "b.txt").write_bytes(b"one")
    (job.artifacts / "inner" / "a.txt").write_bytes(b"two")
    collected = job.collect()
    assert _names(collected) == ["b.txt", "inner/a.txt"]
    assert collected.skipped == []
    assert collected.files[0].size_bytes == 3
    assert collected.files[0].digest == f"sha256:{hashlib.sha256(b'one').hexdigest()}"
    assert (job.target / "inner" / "a.txt").read_bytes() == b"two"


def test_no_folder_is_no_file(job: Job) -> None:
    job.artifacts.rmdir()
    collected = job.collect()
    assert (collected.files, collected.skipped) == ([], [])


def test_links_are_left(job: Job, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (job.artifacts / "absolute").symlink_to(secret)
    (job.artifacts / "relative").symlink_to("../../secret")
    (job.artifacts / "child").symlink_to("other")
    (job.artifacts / "other").write_text("x")
    collected = job.collect()
    assert _names(collected) == ["other"]
    assert {name for name, _ in collected.skipped} == {"absolute", "relative", "child"}
    assert {why for _, why in collected.skipped} == {"it is a link"}


def test_linked_folders_are_not_entered(job: Job, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (job.artifacts / "inner").symlink_to(tmp_path / "outside")
    assert job.collect().files == []


def test_a_linked_root_is_not_entered(job: Job, tmp_path: Path) -> None:
    job.artifacts.rmdir()
    job.artifacts.symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    assert job.collect().files == []


def test_a_pipe_does_not_hold_us_up(job: Job) -> None:
    os.mkfifo(job.artifacts / "pipe")
    collected = job.collect()
    assert collected.skipped == [("pipe", "it is not an ordinary file with one name")]


def test_a_file_with_two_names_is_left(job: Job) -> None:
    (job.folder / "elsewhere").write_text("x")
    os.link(job.folder / "elsewhere", job.artifacts / "here")
    collected = job.collect()
    assert collected.files == []
    assert len(collected.skipped) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_left(job: Job) -> None:
    os.mknod(job.artifacts / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    assert job.collect().files == []


@pytest.mark.parametrize("name", ["line\nbreak", "back\\slash", "bell\a", b"\xff", "bidi\u202e"])
def test_odd_names_are_left_and_shown_harmlessly(job: Job, name: str | bytes) -> None:
    open(os.path.join(os.fsencode(job.artifacts), os.fsencode(name)), "w").close()
    collected = job.collect()
    assert collected.files == []
    ((shown, why),) = collected.skipped
    assert shown.isascii()
    assert shown.isprintable()
    assert why == "its name is not allowed"


def test_dots_are_ordinary_names(job: Job) -> None:
    for name in ("..x", "...", ".hidden"):
        (job.artifacts / name).write_text("x")
    assert _names(job.collect()) == ["...", "..x", ".hidden"]


def test_deep_folders_are_entered_so_far(job: Job) -> None:
    path = job.artifacts
    for _ in range(DEPTH_MAX + 5):
        path = path / "d"
        path.mkdir()
        (path / "f").write_text("x")
    collected = job.collect()
    assert len(collected.files) == DEPTH_MAX - 1
    assert collected.skipped


def test_very_deep_folders_do_no_harm(job: Job) -> None:
    here = os.open(job.artifacts, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert job.collect().files == []


def test_so_many_files_are_taken(job: Job) -> None:
    for number in range(10):
        (job.artifacts / str(number)).write_text("x")
    collected = job.collect(files_max=3)
    assert len(collected.files) == 3
    assert collected.skipped == [("3", "there are more than 3 artifacts")]


def test_so_many_entries_are_looked_at(job: Job) -> None:
    for number in range(ENTRIES_MAX + 10):
        os.mknod(job.artifacts / f"{number:06}")
    collected = job.collect(files_max=10)
    assert len(collected.files) == 10
    assert any("entries" in why for _, why in collected.skipped)


def test_so_many_bytes_are_taken(job: Job) -> None:
    (job.artifacts / "a").write_bytes(bytes(600))
    (job.artifacts / "b").write_bytes(bytes(600))
    (job.artifacts / "c").write_bytes(bytes(400))
    collected = job.collect(bytes_max=1000)
    assert _names(collected) == ["a", "c"]
    assert collected.total_bytes == 1000
    assert collected.skipped == [("b", "there are too many bytes of artifacts")]


def test_holes_count_as_bytes(job: Job) -> None:
    with open(job.artifacts / "hole", "wb") as file:
        file.truncate(1 << 40)
    assert job.collect().files == []


def test_what_cannot_be_read_is_named(job: Job) -> None:
    (job.artifacts / "dir" / "f").parent.mkdir()
    (job.artifacts / "dir" / "f").write_text("x")
    (job.artifacts / "dir").chmod(0o000)
    collected = job.collect()
    (job.artifacts / "dir").chmod(0o700)
    assert len(collected.files) == (1 if os.geteuid() == 0 else 0)


def test_no_descriptor_stays_open(job: Job) -> None:
    os.mkfifo(job.artifacts / "pipe")
    (job.artifacts / "link").symlink_to("/etc/passwd")
    (job.artifacts / "file").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    job.collect()
    assert len(os.listdir("/proc/self/fd")) == before
