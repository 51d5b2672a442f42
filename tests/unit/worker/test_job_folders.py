"""Folders of jobs that are gone go from every disk; those of jobs that are there stay."""

import os
from pathlib import Path

import pytest
from tests.databases import WORKSPACE
from tests.unit.worker.bench import LIMITS, Bench

from ade.clock import SystemClock, new_id
from ade.stages.submit.model import Submission
from ade.worker import job_folders
from ade.worker.job_folders import JobFolders, remove_abandoned, take_away


@pytest.fixture
def folders(bench: Bench) -> JobFolders:
    return JobFolders(bench.kernel, bench.jobs_dir)


def make(jobs_dir: Path, name: str, *, young: bool = False) -> Path:
    """Make a folder with a file in it."""
    folder = jobs_dir / name
    folder.mkdir(parents=True)
    (folder / "logs.txt").write_text("said")
    if not young:
        os.utime(folder, (1, 1))
    return folder


async def submitted(bench: Bench) -> str:
    accepted = await bench.kernel.submit(Submission(WORKSPACE, "echo", "{}", LIMITS, "someone"))
    return accepted.job.id


async def test_what_the_database_does_not_know_goes(bench: Bench, folders: JobFolders) -> None:
    known = make(bench.jobs_dir, await submitted(bench))
    gone = make(bench.jobs_dir, new_id(SystemClock()))
    young = make(bench.jobs_dir, new_id(SystemClock()), young=True)
    other = make(bench.jobs_dir, "notes-of-someone")
    assert await folders.remove_deleted() == 1
    assert [folder.is_dir() for folder in (known, gone, young, other)] == [True, False, True, True]


async def test_each_call_looks_at_some(
    bench: Bench, folders: JobFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_folders, "FOLDERS_PER_SWEEP", 2)
    monkeypatch.setattr(job_folders, "FOLDERS_PER_READ", 1)
    for _ in range(3):
        make(bench.jobs_dir, await submitted(bench))
    for _ in range(4):
        make(bench.jobs_dir, new_id(SystemClock()))
    removed = [await folders.remove_deleted() for _ in range(5)]
    assert sum(removed) == 4
    assert max(removed) <= 2


async def test_a_database_that_is_away_costs_no_folder(bench: Bench, folders: JobFolders) -> None:
    gone = make(bench.jobs_dir, new_id(SystemClock()))
    bench.store.close()
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the database says
        await folders.remove_deleted()
    assert gone.is_dir()


async def test_a_worker_that_keeps_nothing_removes_the_folder_at_the_end(bench: Bench) -> None:
    async with bench.working(keeps_folders=False):
        job = await bench.submit(value=1)
        await bench.ended(job)
    assert not (bench.jobs_dir / job.id).exists()


def test_what_a_dead_process_left_is_removed_by_age(tmp_path: Path) -> None:
    old, young = make(tmp_path, new_id(SystemClock())), make(tmp_path, "x", young=True)
    aside = take_away(make(tmp_path, new_id(SystemClock())))
    assert aside is not None
    os.utime(aside, (1, 1))
    remove_abandoned(tmp_path)
    assert [old.exists(), young.exists(), aside.exists()] == [False, True, False]
    assert take_away(old) is None
