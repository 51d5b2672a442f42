"""The API before object storage: what it answers while the storage is there, away, and spoilt."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.api.server import Server, problem
from tests.object_storage import KEY_ID, SECRET, TIMEOUTS, ObjectStorage, object_storage

from ade.storage import Blobs
from ade.storage.remote_blobs import RemoteBlobs

pytestmark = pytest.mark.slow

WS = "/api/v1/workspaces/default"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[ObjectStorage]:
    """Start object storage."""
    with object_storage(tmp_path / "s3") as storage:
        yield storage


@pytest.fixture
async def server(
    request: pytest.FixtureRequest, sqlite_url: str, tmp_path: Path, storage: ObjectStorage
) -> AsyncIterator[Server]:
    """Serve before it, with other timeouts."""
    remote = RemoteBlobs(storage.remote(getattr(request, "param", TIMEOUTS)))
    await asyncio.to_thread(remote.claim, "me")
    server = Server.open(sqlite_url, tmp_path, blobs=Blobs(tmp_path / "blobs", remote))
    yield server
    server.close()


async def upload(server: Server, content: bytes) -> str:
    """Upload a document; return where it is."""
    answer = await server.http.post(f"{WS}/documents", files={"file": ("a.csv", content)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["links"]["content"])


def forget(tmp_path: Path) -> None:
    """Empty the folder of blobs, as on a host that has just begun."""
    for path in (tmp_path / "blobs" / "sha256").rglob("*"):
        if path.is_file():
            path.unlink()


async def health_of_storage(server: Server) -> tuple[str, str]:
    """Ask how the storage is."""
    answer = await server.http.get("/api/v1/health")
    assert answer.status_code == 200
    for secret in (KEY_ID, SECRET, "s3://"):
        assert secret not in answer.text
    (found,) = [one for one in answer.json()["components"] if one["name"] == "storage"]
    return found["status"], found["detail"]


async def test_documents_and_configurations_are_fetched_where_they_are_not(
    server: Server, storage: ObjectStorage, tmp_path: Path
) -> None:
    content = await upload(server, b"a,b\n1,2\n")
    made = await server.http.post(f"{WS}/configurations", json={"name": "c", "template": "payroll"})
    path = made.json()["links"]["self"]
    package = (await server.http.get(f"{path}/package")).content
    again = await server.http.put(
        f"{path}/package", content=package, headers={"Content-Type": "application/zip"}
    )
    assert again.status_code in (200, 204), again.text
    forget(tmp_path)
    assert (await server.http.get(content)).content == b"a,b\n1,2\n"
    forget(tmp_path)
    part = await server.http.get(content, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"b\n1")
    assert (await server.http.get(f"{path}/package")).content == package


async def test_a_storage_that_is_away_is_a_503_and_degrades_health(
    server: Server, storage: ObjectStorage, tmp_path: Path
) -> None:
    content = await upload(server, b"a\n")
    status, detail = await health_of_storage(server)
    assert (status, "The object storage answers." in detail) == ("ok", True)
    storage.kill()
    assert (await server.http.get(content)).content == b"a\n"  # of the cache
    forget(tmp_path)
    found = problem(await server.http.get(content), 503, "unavailable")
    refused = await server.http.post(f"{WS}/documents", files={"file": ("b.csv", b"b\n")})
    assert problem(refused, 503, "unavailable")["detail"] == found["detail"]
    assert refused.headers["retry-after"]
    for secret in (KEY_ID, SECRET, storage.url, "127.0.0.1"):
        assert secret not in refused.text
    assert len((await server.http.get(f"{WS}/documents")).json()["items"]) == 1
    status, detail = await health_of_storage(server)
    assert (status, "The object storage is away." in detail) == ("degraded", True)
    storage.start()
    assert (await server.http.get(content)).content == b"a\n"
    assert (await health_of_storage(server))[0] == "ok"


@pytest.mark.parametrize("server", [replace(TIMEOUTS, silence_seconds=6, retries=0)], indirect=True)
async def test_a_frozen_storage_holds_up_nothing_else(
    server: Server, storage: ObjectStorage, tmp_path: Path
) -> None:
    content = await upload(server, b"a\n")
    forget(tmp_path)
    with storage.frozen():
        waiting = [asyncio.create_task(server.http.get(content)) for _ in range(3)]
        health = [asyncio.create_task(health_of_storage(server)) for _ in range(3)]
        assert (await server.http.get("/readyz")).status_code == 200
        assert (await server.http.get(f"{WS}/documents")).status_code == 200
        assert {status for status, _ in await asyncio.gather(*health)} == {"degraded"}
        for answer in await asyncio.gather(*waiting):
            problem(answer, 503, "unavailable")
    assert (await server.http.get(content)).content == b"a\n"


async def test_spoilt_bytes_are_said_to_be_so(
    server: Server, storage: ObjectStorage, tmp_path: Path
) -> None:
    content = await upload(server, b"a\n")
    digest = (await server.http.get(content)).headers["etag"].strip('"')
    forget(tmp_path)
    storage.spoil(digest, b"b\n")
    found = problem(await server.http.get(content), 503, "unavailable")
    assert "damaged" in found["detail"]
