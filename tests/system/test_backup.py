"""`ade backup` beside a server at work, `ade restore` elsewhere: all of one moment, and it runs."""

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.databases import empty_postgres, postgres_programs
from tests.processes import eventually
from tests.system.server import ADE, ENDED, JOBS, Server, Start, echo, starting

COMMAND_SECONDS = 120
DOCUMENTS = "/api/v1/workspaces/default/documents"


def ade(env: dict[str, str], folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(
        [ADE, *command],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
    )
    return done


def ade_json(env: dict[str, str], folder: Path, *command: str) -> Any:
    """Run a command that must succeed, and read what it prints."""
    done = ade(env, folder, *command, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


class Load(threading.Thread):
    """Submit jobs, upload documents and delete some again until stopped."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._ending = threading.Event()
        self.turns = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                # No faster than they end, so that few are left to run after the restore.
                wait = {"Prefer": "wait=20"}
                answer = self._server.http.post(JOBS, json=echo(value=self.turns), headers=wait)
                assert answer.status_code in (200, 202), answer.text
                content = f"a,b\n{self.turns},{os.urandom(4).hex()}\n".encode()
                made = self._server.http.post(DOCUMENTS, files={"file": ("t.csv", content)})
                assert made.status_code == 201, made.text
                if self.turns % 3 == 0:
                    self._server.http.delete(f"{DOCUMENTS}/{made.json()['document_id']}")
                self.turns += 1
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._ending.set()
        self.join()
        if self.error is not None:
            raise self.error


@contextmanager
def loaded(server: Server) -> Iterator[Load]:
    load = Load(server)
    load.start()
    try:
        eventually(lambda: load.turns > 5 or load.error, 60)
        yield load
    finally:
        load.stop()


def check_round_trip(start: Start, elsewhere: Start) -> None:
    """Back a server up twice while it works, and restore it elsewhere."""
    server = start.server(ADE_QUEUE_SIZE=0)
    backups = start.folder / "backups"
    env = start.environment()
    with loaded(server) as load:
        first = ade_json(env, start.folder, "backup", str(backups))
        seen = load.turns
        eventually(lambda: load.turns > seen + 5 or load.error, 60)
        second = ade_json(env, start.folder, "backup", str(backups))
    assert second["missing"] == first["missing"] == []
    assert second["blobs"] > first["blobs"] > 0
    assert server.stop() == 0

    target = elsewhere.environment()
    restored = ade_json(target, elsewhere.folder, "restore", str(backups))
    assert restored["folder"] == second["folder"]
    assert ade_json(target, elsewhere.folder, "db", "check")["findings"] == []
    blobs = list((elsewhere.data_dir / "blobs" / "sha256").glob("*/*"))
    assert len(blobs) == second["blobs"]
    for path in blobs:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    again = ade(target, elsewhere.folder, "restore", str(backups))
    assert (again.returncode, "overwrites nothing" in again.stderr) == (2, True)


def check_that_work_goes_on(elsewhere: Start) -> None:
    revived = elsewhere.server(ADE_QUEUE_SIZE=0)
    jobs = revived.http.get(JOBS, params={"limit": 20}).json()["items"]
    assert jobs
    for job in jobs:
        assert revived.ended_job(job)["status"] in ENDED
    assert revived.ended_job(revived.submit(value="new"))["status"] == "succeeded"
    for document in revived.http.get(DOCUMENTS).json()["items"]:
        content = revived.http.get(f"{DOCUMENTS}/{document['document_id']}/content").content
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == document["digest"]


def test_a_busy_server_on_sqlite(start: Start, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with starting(tmp_path / "elsewhere") as elsewhere:
        check_round_trip(start, elsewhere)
        check_that_work_goes_on(elsewhere)


def test_a_busy_server_on_postgresql(
    start_on_postgres: Start,
    postgres_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", postgres_programs())
    (tmp_path / "elsewhere").mkdir()
    with (
        empty_postgres(postgres_server) as url,
        starting(tmp_path / "elsewhere", ADE_DATABASE_URL=url) as elsewhere,
    ):
        check_round_trip(start_on_postgres, elsewhere)
