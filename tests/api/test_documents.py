"""Documents: upload, list, download, delete."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import Server, problem

DOCUMENTS = "/api/v1/workspaces/default/documents"
MIB = 1024 * 1024
BOUNDARY = "b0undary"


def part(
    content: bytes = b"a,b\n1,2\n",
    disposition: str | None = None,
    headers: dict[str, str] | None = None,
) -> bytes:
    """Write one part of a form."""
    line = disposition or 'form-data; name="file"; filename="t.csv"'
    lines = {"Content-Disposition": line, **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"--{BOUNDARY}\r\n{head}\r\n".encode() + content + b"\r\n"


async def send(server: Server, *parts: bytes, end: bytes | None = None) -> httpx.Response:
    """Send a form."""
    body = b"".join(parts) + (f"--{BOUNDARY}--\r\n".encode() if end is None else end)
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return await server.http.post(DOCUMENTS, content=body, headers=kind)


async def upload(
    server: Server, content: bytes = b"a,b\n1,2\n", name: str = "table.csv"
) -> dict[str, Any]:
    """Upload a file that must be accepted."""
    answer = await server.http.post(DOCUMENTS, files={"file": (name, content, "text/csv")})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def stored(folder: Path) -> list[Path]:
    """List every file below the blobs."""
    return [path for path in (folder / "blobs").rglob("*") if path.is_file()]


async def test_a_document_is_uploaded_found_and_read_back(server: Server) -> None:
    content = os.urandom(3 * MIB + 17)
    answer = await server.http.post(DOCUMENTS, files={"file": ("übersicht.xlsx", content)})
    assert answer.status_code == 201
    made = answer.json()
    assert made["name"] == "übersicht.xlsx"
    assert made["size_bytes"] == len(content)
    assert made["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
    assert answer.headers["location"] == f"{DOCUMENTS}/{made['document_id']}"
    assert (await server.http.get(answer.headers["location"])).json() == made
    assert (await server.http.get(DOCUMENTS)).json() == {"items": [made], "next_cursor": None}
    got = await server.http.get(made["links"]["content"])
    assert got.content == content
    assert got.headers["etag"] == f'"{made["digest"]}"'
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert "%C3%BCbersicht.xlsx" in got.headers["content-disposition"]


async def test_the_same_bytes_twice_are_two_documents_and_one_file(
    server: Server, tmp_path: Path
) -> None:
    first, second = await upload(server), await upload(server, name="again.csv")
    assert first["document_id"] != second["document_id"]
    assert first["digest"] == second["digest"]
    assert len(stored(tmp_path)) == 1


async def test_a_document_that_was_deleted_is_gone(server: Server) -> None:
    made = await upload(server)
    path = made["links"]["self"]
    assert (await server.http.delete(path)).status_code == 204
    for gone in (path, made["links"]["content"]):
        problem(await server.http.get(gone), 404, "not_found")
    problem(await server.http.delete(path), 404, "not_found")
    assert (await server.http.get(DOCUMENTS)).json()["items"] == []


async def test_pages_of_documents(server: Server) -> None:
    made = [(await upload(server, name=f"{n}.csv"))["name"] for n in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = (await server.http.get(DOCUMENTS, params=query)).json()
        seen += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]
    problem(await server.http.get(DOCUMENTS, params={"cursor": "x"}), 422, "validation_error")
    problem(await server.http.get(DOCUMENTS, params={"limit": "0"}), 422, "validation_error")


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=6-", 206, b"6789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=5-100", 206, b"56789"),
        ("bytes=3-1", 200, b"0123456789"),
        ("bytes=-", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
        ("bytes=0-1,3-4", 200, b"0123456789"),
        ("bytes=" + "9" * 30 + "-", 200, b"0123456789"),
    ],
)
async def test_ranges(standing: Server, asked: str, status: int, expected: bytes) -> None:
    path = (await upload(standing, b"0123456789"))["links"]["content"]
    got = await standing.http.get(path, headers={"Range": asked})
    assert (got.status_code, got.content) == (status, expected)


async def test_a_range_behind_the_end_cannot_be_given(server: Server) -> None:
    path = (await upload(server, b"0123456789"))["links"]["content"]
    got = await server.http.get(path, headers={"Range": "bytes=10-"})
    problem(got, 416, "range_not_satisfiable")
    assert got.headers["content-range"] == "bytes */10"


async def test_bytes_that_a_client_has_are_not_sent_again(server: Server) -> None:
    made = await upload(server, b"0123456789")
    path, tag = made["links"]["content"], f'"{made["digest"]}"'
    known = await server.http.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (known.status_code, known.content) == (304, b"")
    other = {"Range": "bytes=0-1", "If-Range": '"other"'}
    assert (await server.http.get(path, headers=other)).content == b"0123456789"
    same = {"Range": "bytes=0-1", "If-Range": tag}
    assert (await server.http.get(path, headers=same)).content == b"01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\book.xlsx", "book.xlsx"),
        ("..", "document"),
        ("", "document"),
        ("/", "document"),
        ("a\tb\x01c.csv", "a b c.csv"),
        ("evil\u202excod.xlsx", "evil xcod.xlsx"),
        ("x" * 300 + ".xlsx", "x" * 195 + ".xlsx"),
        ("y" * 300, "y" * 200),
        ("表.xlsx", "表.xlsx"),
        ("<script>.csv", "<script>.csv"),
    ],
)
async def test_names_are_cut_down_to_names(standing: Server, given: str, kept: str) -> None:
    sent = await send(standing, part(disposition=f'form-data; name="file"; filename="{given}"'))
    assert sent.status_code == 201, sent.text
    assert sent.json()["name"] == kept
    got = await standing.http.get(sent.json()["links"]["content"])
    assert "\n" not in got.headers["content-disposition"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("text/csv; charset=x", "text/csv"),
        ("TEXT/HTML", "text/html"),
        ("nonsense", None),
        ("a/b/c", None),
        ("x" * 200 + "/y", None),
        ('te"xt/csv', None),
    ],
)
async def test_a_content_type_is_kept_if_it_could_be_one(
    standing: Server, given: str, kept: str | None
) -> None:
    sent = await send(standing, part(headers={"Content-Type": given}))
    assert sent.json()["content_type"] == kept
    got = await standing.http.get(sent.json()["links"]["content"])
    assert got.headers["content-type"].startswith(kept or "application/octet-stream")
    assert "sandbox" in got.headers["content-security-policy"]


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part(disposition='form-data; name="other"; filename="t.csv"')],
        [part(disposition='form-data; name="file"')],
        [part(), part()],
        [part(), part(disposition='form-data; name="note"')],
        [part(disposition="nonsense")],
        [b"garbage"],
        [part(headers={"X-Long": "x" * 5000})],
        [part(headers={f"X-{n}": "x" for n in range(20)})],
    ],
    ids=["none", "name", "no-file", "two", "more", "odd", "garbage", "long", "headers"],
)
async def test_forms_that_are_not_one_file(
    server: Server, tmp_path: Path, parts: list[bytes]
) -> None:
    problem(await send(server, *parts), 422, "validation_error")
    assert stored(tmp_path) == []


async def test_half_a_form_is_no_document(server: Server, tmp_path: Path) -> None:
    problem(await send(server, part(), end=b""), 422, "validation_error")
    problem(await send(server, part()[:-40], end=b""), 422, "validation_error")
    assert stored(tmp_path) == []


async def test_other_media_types_are_refused(server: Server) -> None:
    for kind in ("application/json", "multipart/form-data", "text/csv", ""):
        answer = await server.http.post(
            DOCUMENTS, content=b"x", headers={"Content-Type": kind} if kind else {}
        )
        problem(answer, 415, "unsupported_media_type")


async def test_what_is_too_large_leaves_nothing(serve: Serve, tmp_path: Path) -> None:
    server = await serve(upload_max_mb=1)
    assert (await upload(server, b"x" * MIB))["size_bytes"] == MIB
    answer = await server.http.post(DOCUMENTS, files={"file": ("t", b"y" * (MIB + 1))})
    problem(answer, 413, "payload_too_large")
    assert len(stored(tmp_path)) == 1

    async def endless() -> AsyncIterator[bytes]:
        yield part()[:-2]
        for _ in range(1000):
            yield b"z" * 65536
        raise AssertionError("it was read to the end")

    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    problem(
        await server.http.post(DOCUMENTS, content=endless(), headers=kind), 413, "payload_too_large"
    )
    assert len(stored(tmp_path)) == 1


async def test_a_preamble_without_end_is_not_read_for_ever(serve: Serve) -> None:
    server = await serve(upload_max_mb=1)

    async def headers() -> AsyncIterator[bytes]:
        yield part()
        for _ in range(1000):
            yield b"\r\n" * 32768
        raise AssertionError("it was read to the end")

    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = await server.http.post(DOCUMENTS, content=headers(), headers=kind)
    assert answer.status_code in (413, 422)


async def test_viewers_read_and_editors_write(server: Server) -> None:
    made = await upload(server)
    keys = "/api/v1/workspaces/default/keys"
    key = (await server.http.post(keys, json={"label": "v", "role": "viewer"})).json()["key"]
    viewer = server.client(key)
    assert (await viewer.get(made["links"]["content"])).status_code == 200
    problem(await viewer.delete(made["links"]["self"]), 403, "forbidden")
    problem(await viewer.post(DOCUMENTS, files={"file": b"x"}), 403, "forbidden")
    problem(await server.client().get(made["links"]["content"]), 401, "unauthenticated")


async def test_another_workspaces_document_is_not_there(server: Server) -> None:
    made = await upload(server)
    await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "Lab"})
    path = f"/api/v1/workspaces/lab/documents/{made['document_id']}"
    for answer in (
        await server.http.get(path),
        await server.http.get(path + "/content"),
        await server.http.delete(path),
        await server.http.get(f"{DOCUMENTS}/nope"),
    ):
        problem(answer, 404, "not_found")


async def test_many_uploads_at_once(server: Server, tmp_path: Path) -> None:
    contents = [bytes([n % 8]) * 300_000 for n in range(32)]
    made = await asyncio.gather(*(upload(server, content) for content in contents))
    assert len({one["document_id"] for one in made}) == 32
    assert len(stored(tmp_path)) == 8
    for one, content in zip(made, contents, strict=True):
        assert (await server.http.get(one["links"]["content"])).content == content


async def test_an_upload_that_stalls_is_ended(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ade.http.multipart.SILENCE_SECONDS_MAX", 0.05)

    async def halting() -> AsyncIterator[bytes]:
        yield part()[:-2]
        await asyncio.Event().wait()

    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = await server.http.post(DOCUMENTS, content=halting(), headers=kind)
    problem(answer, 408, "request_timeout")
    assert stored(tmp_path) == []
