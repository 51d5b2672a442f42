"""Files are taken out of a job's folder without following, waiting, or taking too much."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.sandbox.collect import DEPTH_MAX, ENTRIES_MAX, Harvest, collect


class Job:
    """Hold a job's folder and where its files go."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        self.folder = folder
        self.target = target
        self.opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def collect(self, *, files_max: int = 50, bytes_max: int = 1 << 20) -> Harvest:
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


def _names(harvest: Harvest) -> list[str]:
    return [file.name for file in harvest.taken]


def test_ordinary_files_are_taken_with_size_and_digest(job: Job) -> None:
    (job.artifacts / "inner").mkdir()
    (job.artifacts / "b.txt").write_bytes(b"one")
    (job.artifacts / "inner" / "a.txt").write_bytes(b"two")
    harvest = job.collect()
    assert _names(harvest) == ["b.txt", "inner/a.txt"]
    assert harvest.left == []
    assert harvest.taken[0].size_bytes == 3
    assert harvest.taken[0].digest == f"sha256:{hashlib.sha256(b'one').hexdigest()}"
    assert (job.target / "inner" / "a.txt").read_bytes() == b"two"


def test_no_folder_is_no_file(job: Job) -> None:
    job.artifacts.rmdir()
    harvest = job.collect()
    assert (harvest.taken, harvest.left) == ([], [])


def test_links_are_left(job: Job, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (job.artifacts / "absolute").symlink_to(secret)
    (job.artifacts / "relative").symlink_to("../../secret")
    (job.artifacts / "inside").symlink_to("other")
    (job.artifacts / "other").write_text("x")
    harvest = job.collect()
    assert _names(harvest) == ["other"]
    assert {name for name, _ in harvest.left} == {"absolute", "relative", "inside"}
    assert {why for _, why in harvest.left} == {"it is a link"}


def test_linked_folders_are_not_entered(job: Job, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (job.artifacts / "inner").symlink_to(tmp_path / "outside")
    assert job.collect().taken == []


def test_a_linked_root_is_not_entered(job: Job, tmp_path: Path) -> None:
    job.artifacts.rmdir()
    job.artifacts.symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    assert job.collect().taken == []


def test_a_pipe_does_not_hold_us_up(job: Job) -> None:
    os.mkfifo(job.artifacts / "pipe")
    harvest = job.collect()
    assert harvest.left == [("pipe", "it is not an ordinary file with one name")]


def test_a_file_with_two_names_is_left(job: Job) -> None:
    (job.folder / "elsewhere").write_text("x")
    os.link(job.folder / "elsewhere", job.artifacts / "here")
    harvest = job.collect()
    assert harvest.taken == []
    assert len(harvest.left) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_left(job: Job) -> None:
    os.mknod(job.artifacts / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    assert job.collect().taken == []


@pytest.mark.parametrize("name", ["line\nbreak", "back\\slash", "bell\a", b"\xff", "bidi\u202e"])
def test_odd_names_are_left_and_shown_harmlessly(job: Job, name: str | bytes) -> None:
    open(os.path.join(os.fsencode(job.artifacts), os.fsencode(name)), "w").close()
    harvest = job.collect()
    assert harvest.taken == []
    ((shown, why),) = harvest.left
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
    harvest = job.collect()
    assert len(harvest.taken) == DEPTH_MAX - 1
    assert harvest.left


def test_very_deep_folders_do_no_harm(job: Job) -> None:
    here = os.open(job.artifacts, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert job.collect().taken == []


def test_so_many_files_are_taken(job: Job) -> None:
    for number in range(10):
        (job.artifacts / str(number)).write_text("x")
    harvest = job.collect(files_max=3)
    assert len(harvest.taken) == 3
    assert harvest.left == [("3", "there are more than 3 artifacts")]


def test_so_many_entries_are_looked_at(job: Job) -> None:
    for number in range(ENTRIES_MAX + 10):
        os.mknod(job.artifacts / f"{number:06}")
    harvest = job.collect(files_max=10)
    assert len(harvest.taken) == 10
    assert any("entries" in why for _, why in harvest.left)


def test_so_many_bytes_are_taken(job: Job) -> None:
    (job.artifacts / "a").write_bytes(bytes(600))
    (job.artifacts / "b").write_bytes(bytes(600))
    (job.artifacts / "c").write_bytes(bytes(400))
    harvest = job.collect(bytes_max=1000)
    assert _names(harvest) == ["a", "c"]
    assert harvest.bytes == 1000
    assert harvest.left == [("b", "there are too many bytes of artifacts")]


def test_holes_count_as_bytes(job: Job) -> None:
    with open(job.artifacts / "hole", "wb") as file:
        file.truncate(1 << 40)
    assert job.collect().taken == []


def test_what_cannot_be_read_is_named(job: Job) -> None:
    (job.artifacts / "dir" / "f").parent.mkdir()
    (job.artifacts / "dir" / "f").write_text("x")
    (job.artifacts / "dir").chmod(0o000)
    harvest = job.collect()
    (job.artifacts / "dir").chmod(0o700)
    assert len(harvest.taken) == (1 if os.geteuid() == 0 else 0)


def test_no_descriptor_stays_open(job: Job) -> None:
    os.mkfifo(job.artifacts / "pipe")
    (job.artifacts / "link").symlink_to("/etc/passwd")
    (job.artifacts / "file").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    job.collect()
    assert len(os.listdir("/proc/self/fd")) == before
