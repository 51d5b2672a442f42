"""Two servers and two workers, each with a disk of its own: PostgreSQL and object storage only."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.object_storage import ObjectStorage, object_storage
from tests.processes import eventually
from tests.system import cells, runs
from tests.system.server import JOBS, Process, Server, Start, starting
from tests.wheels import make_wheel

from ade.kernel import Kernel
from ade.store.rows import JobRef
from ade.store.session import Session

USES = {
    "requirements.txt": "greeting\n",
    "hooks/on_activate.py": (
        "import greeting\n\n\ndef on_activate():\n    print('hello from', greeting.VERSION)\n"
    ),
}
CELL = "import greeting\nopen('artifacts/note.txt', 'w').write('left')\ngreeting.VERSION"


class Hosts:
    """Start processes on hosts that share nothing but database and object storage."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.wheels = start.folder / "wheels"
        make_wheel(self.wheels, "greeting", "1.5")

    def server(self, name: str) -> Server:
        """Start a server that runs nothing itself."""
        return self.start.server_without_worker(ADE_STORAGE_DATA_DIR=self.folder(name))

    def worker(self, name: str, **settings: object) -> Process:
        """Start a worker."""
        given = {"ADE_STORAGE_DATA_DIR": self.folder(name), "ADE_WHEELHOUSE": self.wheels}
        return self.start.worker(**given | settings)

    def folder(self, name: str) -> Path:
        """Return the data folder of a host."""
        return self.start.folder / name

    def environments(self, name: str) -> list[str]:
        """List the environments on a host's disk."""
        stamps = (self.folder(name) / "venvs").glob("*/complete.json")
        return sorted(stamp.parent.name for stamp in stamps)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[ObjectStorage]:
    """Start object storage."""
    with object_storage(tmp_path / "s3") as storage:
        yield storage


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str, storage: ObjectStorage) -> Iterator[Hosts]:
    """Start processes that share a database and object storage."""
    settings = {"ADE_DATABASE_URL": postgres_url, "ADE_BLOB_URL": storage.url}
    with starting(tmp_path, **settings, **storage.environ()) as start:
        yield Hosts(start)


def test_what_one_host_made_is_there_on_every_other(hosts: Hosts, tmp_path: Path) -> None:
    one, two = hosts.server("server-1"), hosts.server("server-2")
    first = hosts.worker("worker-1")
    configuration = runs.configured(one, USES)
    document = runs.uploaded(two)
    made = runs.succeeded(one, configuration, document)
    kept = cells.run(two, CELL, requirements=["greeting"])
    assert kept["outputs"]["result_json"] == "1.5", kept["error"]
    assert first.stop() == 0
    shutil.rmtree(hosts.folder("worker-1"))  # that host is gone for good

    shutil.rmtree(hosts.wheels)  # whoever comes now can install nothing
    second = hosts.worker("worker-2", ADE_WHEELHOUSE="", ADE_BUILD_NETWORK="off")
    again = runs.succeeded(two, configuration, document)
    (build,) = one.http.get("/api/v1/workspaces/default/builds").json()["items"]
    assert (build["status"], build["attempt"]) == ("ready", 1)
    assert "environment fetched" in second.output
    assert len(hosts.environments("worker-2")) == 1
    assert hosts.environments("server-1") == hosts.environments("server-2") == []

    for server in (one, two):
        read_everywhere(server, made, again, kept["job"], tmp_path)
        assert "greeting==1.5" in activation(server, configuration)["packages"]
        log = server.http.get(f"/api/v1/workspaces/default/builds/{build['build_id']}/log").text
        assert "hello from 1.5" in log
    assert second.stop() == 0


def read_everywhere(
    server: Server, made: dict[str, Any], again: dict[str, Any], cell: dict[str, Any], folder: Path
) -> None:
    """Read results, logs, events and files through one server."""
    assert runs.output(server, made, folder) == runs.output(server, again, folder)
    (left,) = server.result(cell)["artifacts"]
    content = server.http.get(f"/api/v1/artifacts/{left['artifact_id']}/content")
    assert content.text == "left"
    for run in (made, again):
        job = runs.job_of(run)
        assert server.log(job)[-1] == "job.succeeded"
        assert server.http.get(f"{JOBS}/{job['job_id']}/logs").status_code == 200


def activation(server: Server, configuration: str) -> dict[str, Any]:
    """Read what the activation of a version installed."""
    base = f"/api/v1/workspaces/default/configurations/{configuration}/versions/1/activation"
    answer = server.http.get(base)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_files_of_deleted_jobs_go_from_every_disk(hosts: Hosts, postgres_url: str) -> None:
    server = hosts.server("server-1")
    first = hosts.worker("worker-1")
    old, new = server.submit(value=1), server.submit(value=2)
    for job in (old, new):
        server.ended_job(job)
    assert first.stop() == 0
    folders = {
        job["job_id"]: hosts.folder("worker-1") / "jobs" / job["job_id"] for job in (old, new)
    }
    for folder in folders.values():
        assert folder.is_dir()
        os.utime(folder, (1, 1))
    session = Session(postgres_url)  # another process deletes it
    try:
        ref = JobRef(server.job(old)["workspace_id"], old["job_id"])
        asyncio.run(Kernel(session).delete(ref))
    finally:
        session.close()
    assert all(folder.is_dir() for folder in folders.values())
    hosts.worker("worker-1")
    eventually(lambda: not folders[old["job_id"]].exists(), 60)
    assert folders[new["job_id"]].is_dir()
