"""Real servers before object storage: what they keep outlives their disks and is for all hosts."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.object_storage import KEY_ID, SECRET, ObjectStorage, object_storage
from tests.system.cells import run, value
from tests.system.runs import SAMPLE, configured, ended, job_of, started, succeeded, uploaded
from tests.system.server import JOBS, Server, Start, starting

WS = "/api/v1/workspaces/default"
LEAVES = "open('artifacts/note.txt', 'w').write('left behind')"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[ObjectStorage]:
    """Start object storage."""
    with object_storage(tmp_path / "s3") as storage:
        yield storage


@pytest.fixture
def start(tmp_path: Path, storage: ObjectStorage) -> Iterator[Start]:
    """Start `ade` processes that keep their blobs there."""
    with starting(tmp_path, ADE_BLOB_URL=storage.url, **storage.environ()) as start:
        yield start


def document(server: Server, document_id: str) -> bytes:
    """Download a document."""
    answer = server.http.get(f"{WS}/documents/{document_id}/content")
    assert answer.status_code == 200, answer.text
    return answer.content


def artifact(server: Server, found: dict[str, Any]) -> bytes:
    """Download an artifact."""
    answer = server.http.get(f"/api/v1/artifacts/{found['artifact_id']}/content")
    assert answer.status_code == 200, answer.text
    return answer.content


def output(server: Server, made: dict[str, Any]) -> bytes:
    """Download what a run wrote."""
    answer = server.http.get(f"{JOBS}/{made['run_id']}/output")
    assert answer.status_code == 200, answer.text
    return answer.content


def test_what_was_kept_is_there_on_a_host_with_an_empty_disk(
    start: Start, storage: ObjectStorage
) -> None:
    server = start.server()
    configuration, input_ = configured(server), uploaded(server)
    first = succeeded(server, configuration, input_)
    (left,) = run(server, LEAVES)["artifacts"]
    written = output(server, first)
    assert server.stop() == 0
    shutil.rmtree(start.data_dir / "blobs")
    shutil.rmtree(start.data_dir / "jobs")
    server = start.server()
    assert document(server, input_) == SAMPLE.read_bytes()
    assert artifact(server, left) == b"left behind"
    assert output(server, first) == written
    shutil.rmtree(start.data_dir / "blobs")
    succeeded(server, configuration, input_)
    assert storage.blob(left["digest"]).read_bytes() == b"left behind"


def test_jobs_and_the_log_hold_no_credentials(start: Start, storage: ObjectStorage) -> None:
    server = start.server()
    environ = value(server, "import os\ndict(os.environ)")
    assert not [name for name in environ if name.startswith(("AWS", "ADE_BLOB"))]
    storage.kill()
    answer = server.http.post(f"{WS}/documents", files={"file": ("a.csv", b"a")}, timeout=60)
    assert answer.status_code == 503
    printed = start.command("settings", "--json")
    assert printed.ended() == 0
    assert storage.url in printed.output
    for secret in (KEY_ID, SECRET):
        assert secret not in server.output
        assert secret not in printed.output
    assert "the blob storage is away" in server.output


def test_a_run_that_finds_the_storage_away_is_tried_again(
    start: Start, storage: ObjectStorage
) -> None:
    server = start.server()
    configuration, input_ = configured(server), uploaded(server)
    succeeded(server, configuration, input_)  # so that its build is there
    shutil.rmtree(start.data_dir / "blobs")
    storage.kill()
    begun = started(server, configuration, input_)
    server.said("the blob storage is away", 60)
    storage.start()
    assert ended(server, begun)["status"] == "succeeded"
    log = server.log(job_of(begun))
    assert log.count("job.started") == 2, log


def test_hosts_share_what_is_kept_and_nothing_else(
    tmp_path: Path, storage: ObjectStorage, postgres_url: str
) -> None:
    with starting(
        tmp_path, ADE_DATABASE_URL=postgres_url, ADE_BLOB_URL=storage.url, **storage.environ()
    ) as start:
        hosts = [start.server(ADE_STORAGE_DATA_DIR=tmp_path / name) for name in ("one", "two")]
        one, two = hosts
        configuration, input_ = configured(one), uploaded(two)
        made = succeeded(one, configuration, input_)
        (left,) = run(two, LEAVES)["artifacts"]
        for host in hosts:  # whichever of them ran it
            assert document(host, input_) == SAMPLE.read_bytes()
            assert artifact(host, left) == b"left behind"
            assert output(host, made) == output(one, made)
        assert len(storage.keys()) > len({left["digest"], "owner", "document"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ADE_BLOB_URL": "s3://no/x"}, "ADE_BLOB_URL='s3://no/x' is not allowed"),
        ({"AWS_SECRET_ACCESS_KEY": "another"}, "it refuses these credentials"),
        ({"ADE_BLOB_URL": "s3://elsewhere"}, "there is no such bucket"),
        ({"AWS_ENDPOINT_URL": "ftp://x"}, "AWS_ENDPOINT_URL must begin with"),
        ({"AWS_PROFILE": "x", "AWS_ACCESS_KEY_ID": ""}, "AWS_PROFILE=x has no aws_access_key_id"),
    ],
)
def test_a_storage_that_cannot_be_used_stops_the_start_in_one_line(
    start: Start, settings: dict[str, str], message: str
) -> None:
    process = start.command("serve", "--port", "0", **settings)
    assert process.ended() in (2, 5)
    (line,) = process.output.splitlines()[-1:]
    assert line.startswith("ade: ")
    assert message in line
    assert "Traceback" not in process.output
    for secret in (KEY_ID, SECRET):
        assert secret not in process.output


def test_another_database_may_not_use_the_same_place(start: Start, storage: ObjectStorage) -> None:
    server = start.server()
    input_ = uploaded(server)
    process = start.command("serve", "--port", "0", ADE_STORAGE_DATA_DIR=start.folder / "another")
    assert process.ended() == 5
    assert f"ADE_BLOB_URL={storage.url} belongs to another ADE database" in process.output
    assert document(server, input_) == SAMPLE.read_bytes()
