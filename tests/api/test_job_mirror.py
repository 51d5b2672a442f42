"""The files of the shared folder: copies of the database that come back when they are lost."""

import asyncio
import contextlib
import errno
import json
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.api.agents import PlainWorker
from tests.api.conftest import Serve
from tests.api.server import Server

from ade.app.job_mirror import JobMirror
from ade.domain.errors import StorageFull
from ade.store.rows import JobRef


@pytest.fixture
def worker(server: Server) -> PlainWorker:
    return PlainWorker(server.http, "gpu")


async def submit(server: Server, **body: Any) -> str:
    answer = await server.http.post("/run-simulation", json={"config": {"steps": 3}} | body)
    return str(answer.json()["job_id"])


def root(server: Server) -> Path:
    return server.app.mirror.folder.root


def read(server: Server, job_id: str, name: str = "status.json") -> dict[str, Any]:
    return dict(json.loads((root(server) / "jobs" / job_id / name).read_text()))


def registry(server: Server) -> dict[str, Any]:
    return dict(json.loads((root(server) / "job_track.json").read_text()))


def contents(server: Server) -> dict[str, str]:
    """Read all that the server writes."""
    return {
        str(path.relative_to(root(server))): path.read_text()
        for path in root(server).rglob("*.json")
    }


async def health(server: Server) -> str:
    components = (await server.http.get("/api/v1/health")).json()["components"]
    [found] = [one["status"] for one in components if one["name"] == "shared-folder"]
    return str(found)


@contextlib.asynccontextmanager
async def mirrored(server: Server) -> AsyncIterator[None]:
    task = asyncio.create_task(server.app.mirror.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(seen: Any) -> None:
    """Wait for a file that a running mirror writes."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(FileNotFoundError, KeyError):
                if seen():
                    return
            await asyncio.sleep(0.02)


async def test_a_running_mirror_follows_what_workers_report(
    server: Server, worker: PlainWorker
) -> None:
    async with mirrored(server):
        job_id = await submit(server)
        await worker.take()
        await until(lambda: read(server, job_id)["status"] == "dispatched")
        assert not (root(server) / "queue" / f"{job_id}.json").exists()
        await worker.say(job_id, "running", container_id="c1", container_name="n1")
        await until(lambda: read(server, job_id)["status"] == "running")
        assert read(server, job_id, "job_info.json")["container_name"] == "n1"
        await worker.say(job_id, "failed", exit_code=3)
        await until(lambda: read(server, job_id)["status"] == "failed")
        last = read(server, job_id)
        assert (last["worker_id"], last["exit_code"], last["container_id"]) == ("gpu", 3, "c1")
        await until(lambda: registry(server)[job_id]["status"] == "failed")


async def test_a_look_finds_what_changed_among_old_jobs(
    server: Server, worker: PlainWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ade.app.job_mirror.PAGE", 2)
    old = [await submit(server) for _ in range(2)]
    for _ in old:
        await worker.take()
    await worker.say(old[0], "running")
    mirror = server.app.mirror
    await mirror.walk()
    await mirror.look()
    newer = [await submit(server) for _ in range(5)]
    for job_id in newer:
        shutil.rmtree(root(server) / "jobs" / job_id)
    fresh = JobMirror(server.kernel, mirror.folder)
    await worker.say(old[0], "finished", exit_code=0)
    await worker.say(old[1], "running")
    await mirror.look()
    assert [read(server, job_id)["status"] for job_id in old] == ["finished", "running"]
    await fresh.look()
    assert {read(server, job_id)["status"] for job_id in newer} == {"queued"}


async def test_what_was_deleted_is_written_again(server: Server, worker: PlainWorker) -> None:
    jobs = [await submit(server, target_host="gpu") for _ in range(3)]
    await worker.take()
    await worker.say(jobs[0], "running", container_id="c1")
    mirror = server.app.mirror
    await mirror.walk()
    before = contents(server)
    assert set(registry(server)) == set(jobs)
    shutil.rmtree(root(server))
    await mirror.walk()
    configs = {path for path in before if path.startswith("configs/")}
    assert contents(server) == {path: before[path] for path in before if path not in configs}


async def test_a_server_that_was_down_catches_up(
    server: Server, worker: PlainWorker, serve: Serve
) -> None:
    gone, live = await submit(server), await submit(server)
    await worker.take()
    await server.app.mirror.walk()
    await worker.say(gone, "running")
    await worker.say(gone, "finished", exit_code=0)
    assert read(server, gone)["status"] == "dispatched"
    (root(server) / "queue" / f"{gone}.json").write_text("{}")
    fresh = JobMirror(server.kernel, server.app.mirror.folder)
    await fresh.walk()
    assert read(server, gone)["status"] == "finished"
    assert [path.stem for path in (root(server) / "queue").iterdir()] == [live]
    assert registry(server)[gone]["status"] == "finished"


async def test_what_is_in_the_files_is_never_believed(server: Server, worker: PlainWorker) -> None:
    job_id = await submit(server)
    await server.app.mirror.walk()
    forged = read(server, job_id) | {"status": "finished"}
    (root(server) / "jobs" / job_id / "status.json").write_text(json.dumps(forged))
    (root(server) / "queue" / f"{job_id}.json").unlink()
    assert (await server.http.get(f"/status/{job_id}")).json()["status"] == "queued"
    assert (await worker.take())["job_id"] == job_id


async def test_a_link_in_the_way_stops_only_its_own_job(server: Server, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    trapped, other = await submit(server), await submit(server)
    shutil.rmtree(root(server) / "jobs" / trapped)
    (root(server) / "jobs" / trapped).symlink_to(victim)
    shutil.rmtree(root(server) / "jobs" / other)
    with capture_logs() as logs:
        await server.app.mirror.walk()
    assert list(victim.iterdir()) == []
    assert read(server, other)["status"] == "queued"
    assert [line["job_id"] for line in logs if line["log_level"] == "warning"] == [trapped]


async def test_a_folder_that_cannot_be_written_stops_no_job(
    server: Server, worker: PlainWorker
) -> None:
    jobs = root(server) / "jobs"
    job_id = await submit(server)
    shutil.rmtree(jobs)
    jobs.write_text("in the way")
    with capture_logs() as logs:
        async with mirrored(server):
            await until(lambda: any("behind" in line["event"] for line in logs))
            assert await health(server) == "degraded"
            await worker.take()
            assert (await worker.say(job_id, "running")).status_code == 200
            jobs.unlink()
            server.app.mirror.walk_soon()
            await until(lambda: read(server, job_id)["status"] == "running")
            await until(lambda: server.app.mirror.trouble is None)
            assert await health(server) == "ok"


async def test_what_found_no_room_is_written_later(
    server: Server, worker: PlainWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await submit(server)
    mirror = server.app.mirror
    await mirror.walk()
    await worker.take()

    def write(job_id: str, name: str, content: Any) -> None:
        raise StorageFull("The shared folder is full.")

    with monkeypatch.context() as full:
        full.setattr(mirror.folder, "write_job_file", write)
        with pytest.raises(StorageFull):
            await mirror.look()
    await mirror.look()
    assert read(server, job_id)["status"] == "dispatched"


async def test_folders_that_belong_to_others_stop_only_their_own_jobs(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign, deleted, other = [await submit(server) for _ in range(3)]
    mirror = server.app.mirror
    folder = mirror.folder
    await mirror.walk()
    workspace = await server.directory.find_workspace("default")
    assert workspace is not None
    for job_id in (foreign, deleted, other):
        await server.http.post(f"/stop/{job_id}")
    await server.kernel.delete(JobRef(workspace.id, deleted))
    shutil.rmtree(root(server) / "jobs")
    writing, deleting = folder.write_job_file, folder.delete_job

    def write(job_id: str, name: str, content: Any) -> None:
        if job_id == foreign:
            raise PermissionError(errno.EACCES, "Permission denied")
        writing(job_id, name, content)

    def delete(job_id: str) -> None:
        if job_id == deleted:
            raise PermissionError(errno.EACCES, "Permission denied")
        deleting(job_id)

    monkeypatch.setattr(folder, "write_job_file", write)
    monkeypatch.setattr(folder, "delete_job", delete)
    await mirror.walk()
    assert read(server, other)["status"] == "canceled"
    assert set(registry(server)) == {foreign, other}


async def test_files_of_deleted_jobs_go(server: Server, worker: PlainWorker) -> None:
    job_id, kept = await submit(server), await submit(server)
    await server.app.mirror.walk()
    await server.http.post(f"/stop/{job_id}")
    workspace = await server.directory.find_workspace("default")
    assert workspace is not None
    await server.kernel.delete(JobRef(workspace.id, job_id))
    await server.app.mirror.walk()
    assert [path.name for path in (root(server) / "jobs").iterdir()] == [kept]
    assert set(registry(server)) == {kept}


async def test_servers_that_share_the_folder_agree_in_the_end(
    server: Server, worker: PlainWorker
) -> None:
    other = JobMirror(server.kernel, server.app.mirror.folder)
    running = asyncio.create_task(other.run())
    async with mirrored(server):
        jobs = [await submit(server) for _ in range(8)]
        for end in ("finished", "failed", "stopped", None) * 2:
            job_id = (await worker.take())["job_id"]
            await worker.say(job_id, "running")
            if end == "stopped":
                await server.http.post(f"/stop/{job_id}")
            if end is not None:
                await worker.say(job_id, end, exit_code=1)
        for job_id in jobs:
            known = (await server.http.get(f"/status/{job_id}")).json()
            await until(partial(lambda job, body: read(server, job) == body, job_id, known))
        # A server that read a job before the other one did may write its entry once more.
        await until(lambda: list((root(server) / "queue").iterdir()) == [])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
