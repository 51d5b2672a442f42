"""Configurations: made, edited file by file or as an archive, and turned into versions."""

import asyncio
import io
import stat
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.api.conftest import Serve
from tests.api.server import Server, problem

from ade_engine.examples import FOLDER, example_names

WS = "/api/v1/workspaces/default"
CONFIGURATIONS = f"{WS}/configurations"
MIB = 1024 * 1024
ZIP = {"Content-Type": "application/zip"}


async def make(server: Server, **more: Any) -> str:
    """Make a configuration; return its path."""
    answer = await server.http.post(CONFIGURATIONS, json={"name": "c", **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["links"]["self"])


async def put(server: Server, path: str, name: str, content: bytes = b"x", **h: str) -> Any:
    """Write a file."""
    url = f"{path}/files/{quote(name, safe='/')}"
    headers = {key.replace("_", "-"): value for key, value in h.items()}
    return await server.http.put(url, content=content, headers=headers)


async def paths(server: Server, path: str) -> list[str]:
    """List the files of a draft."""
    listed = (await server.http.get(f"{path}/files")).json()
    return [file["path"] for file in listed["items"]]


def archive(files: dict[str, bytes], mode: int = 0) -> bytes:
    """Make a zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as writing:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            writing.writestr(entry, content)
    return made.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """Read a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as reading:
        return {name: reading.read(name) for name in reading.namelist()}


# --- configurations -------------------------------------------------------------------------------


async def test_a_configuration_is_made_listed_read_and_deleted(server: Server) -> None:
    answer = await server.http.post(CONFIGURATIONS, json={"name": "Members"})
    assert answer.status_code == 201
    made = answer.json()
    path = made["links"]["self"]
    assert answer.headers["location"] == path
    assert made["latest_version"] is None
    assert (await server.http.get(path)).json() == made
    (listed,) = (await server.http.get(CONFIGURATIONS)).json()["items"]
    assert listed["name"] == "Members"
    assert (await server.http.delete(path)).status_code == 204
    for gone in ("", "/files", "/package", "/versions", "/files/a.py"):
        problem(await server.http.get(path + gone), 404, "not_found")
    problem(await server.http.delete(path), 404, "not_found")
    problem(await put(server, path, "a.py"), 404, "not_found")
    assert (await server.http.get(CONFIGURATIONS)).json()["items"] == []


async def test_every_template_is_a_start(server: Server) -> None:
    templates = (await server.http.get(f"{WS}/templates")).json()["items"]
    assert [one["name"] for one in templates] == list(example_names())
    for template in templates:
        path = await make(server, template=template["name"])
        assert await paths(server, path) == sorted(template["files"])
        assert "config.toml" in template["files"]
        read = await server.http.get(f"{path}/files/config.toml")
        assert read.content == (FOLDER / template["name"] / "config.toml").read_bytes()
    asked = {"name": "c", "template": "../payroll"}
    refused = problem(await server.http.post(CONFIGURATIONS, json=asked), 422, "validation_error")
    assert refused["errors"][0]["field"] == "template"


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": "x" * 201}, {"name": 1}, {"name": "n", "id": 1}, [], "x"]
)
async def test_configurations_that_cannot_be(standing: Server, body: Any) -> None:
    problem(await standing.http.post(CONFIGURATIONS, json=body), 422, "validation_error")


async def test_pages_of_configurations(server: Server) -> None:
    for n in range(3):
        await make(server, name=str(n))
    first = (await server.http.get(CONFIGURATIONS, params={"limit": "2"})).json()
    assert [one["name"] for one in first["items"]] == ["2", "1"]
    query = {"limit": "2", "cursor": first["next_cursor"]}
    second = (await server.http.get(CONFIGURATIONS, params=query)).json()
    assert [one["name"] for one in second["items"]] == ["0"]
    assert second["next_cursor"] is None


# --- files ----------------------------------------------------------------------------------------


async def test_files_are_written_read_and_deleted(server: Server) -> None:
    path = await make(server)
    wrote = await put(server, path, "columns/größe 1.py", b"FIELD = 1\n")
    assert wrote.status_code == 201
    assert wrote.json()["path"] == "columns/größe 1.py"
    again = await put(server, path, "columns/größe 1.py", "é".encode())
    assert again.status_code == 200
    await put(server, path, "data.bin", b"\xff\0")
    url = f"{path}/files/columns/{quote('größe 1.py')}"
    read = await server.http.get(url)
    assert read.text == "é"
    assert read.headers["content-type"] == "text/plain; charset=utf-8"
    assert read.headers["x-content-type-options"] == "nosniff"
    assert read.headers["etag"] == again.headers["etag"]
    known = await server.http.get(url, headers={"If-None-Match": read.headers["etag"]})
    assert known.status_code == 304
    binary = await server.http.get(f"{path}/files/data.bin")
    assert (binary.content, binary.headers["content-type"]) == (
        b"\xff\0",
        "application/octet-stream",
    )
    assert await paths(server, path) == ["columns/größe 1.py", "data.bin"]
    assert (await server.http.delete(url)).status_code == 204
    problem(await server.http.get(url), 404, "not_found")
    problem(await server.http.delete(url), 404, "not_found")


@pytest.mark.parametrize(
    "name",
    [
        "..%2Fx",
        "a/%2E%2E/b",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        "a%2F%2Fb",
        "a%5Cb",
        "a%00b",
        "%E2%80%AEa",
        "%20a",
        "%ff",
        "x" * 201,
        "/".join("abcdefghi"),
    ],
)
async def test_odd_paths_are_refused(standing: Server, name: str) -> None:
    path = await make(standing)
    for method in ("PUT", "GET", "DELETE"):
        answer = await standing.http.request(method, f"{path}/files/{name}")
        problem(answer, 422, "validation_error")
    assert await paths(standing, path) == []


async def test_a_file_has_a_limit(server: Server, tmp_path: Path) -> None:
    path = await make(server)
    assert (await put(server, path, "a", b"x" * MIB)).status_code == 201
    problem(await put(server, path, "b", b"x" * (MIB + 1)), 413, "payload_too_large")
    problem(await put(server, path, "a/b"), 422, "validation_error")
    assert await paths(server, path) == ["a"]
    assert list((tmp_path / "blobs" / "unfinished").iterdir()) == []


async def test_two_people_do_not_undo_each_other(server: Server) -> None:
    path = await make(server)
    tag = (await put(server, path, "a", b"1", If_None_Match="*")).headers["etag"]
    problem(await put(server, path, "a", b"2", If_None_Match="*"), 412, "precondition_failed")
    assert (await put(server, path, "a", b"2", If_Match=tag)).status_code == 200
    problem(await put(server, path, "a", b"3", If_Match=tag), 412, "precondition_failed")
    problem(await put(server, path, "b", b"3", If_Match=tag), 412, "precondition_failed")
    problem(await put(server, path, "b", b"3", If_None_Match=tag), 412, "precondition_failed")
    gone = await server.http.delete(f"{path}/files/a", headers={"If-Match": tag})
    problem(gone, 412, "precondition_failed")
    assert (await server.http.get(f"{path}/files/a")).content == b"2"
    assert (await put(server, path, "a", b"4", If_Match="*")).status_code == 200


async def test_one_of_many_writers_wins(server: Server) -> None:
    path = await make(server)
    tag = (await put(server, path, "a", b"0")).headers["etag"]
    came = await asyncio.gather(
        *(put(server, path, "a", str(n).encode(), If_Match=tag) for n in range(1, 9))
    )
    assert sorted(answer.status_code for answer in came) == [200] + [412] * 7


# --- archives -------------------------------------------------------------------------------------


async def test_an_archive_replaces_the_draft_and_comes_back(server: Server) -> None:
    path = await make(server, template="payroll")
    files = {"config.toml": b"name = 'x'\n", "columns/id.py": b"FIELD = 1\n", "b.bin": b"\0\xff"}
    put_ = await server.http.put(
        f"{path}/package",
        content=archive({f"wrapped/{name}": content for name, content in files.items()}),
        headers=ZIP,
    )
    assert put_.status_code == 200, put_.text
    assert [one["path"] for one in put_.json()["items"]] == sorted(files)
    got = await server.http.get(f"{path}/package")
    assert unpacked(got.content) == files
    assert got.headers["content-type"] == "application/zip"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert int(got.headers["content-length"]) == len(got.content)
    assert (await server.http.get(f"{path}/package")).content == got.content
    known = {"If-None-Match": got.headers["etag"]}
    assert (await server.http.get(f"{path}/package", headers=known)).status_code == 304
    back = await server.http.put(f"{path}/package", content=got.content, headers=ZIP)
    assert back.json() == put_.json()


async def test_an_archive_may_come_as_a_form(server: Server) -> None:
    path = await make(server)
    form = {"file": ("p.zip", archive({"config.toml": b""}), "application/zip")}
    assert (await server.http.put(f"{path}/package", files=form)).status_code == 200
    assert await paths(server, path) == ["config.toml"]


async def test_an_archive_is_taken_only_in_place_of_what_was_read(server: Server) -> None:
    path = await make(server)
    tag = (await server.http.get(f"{path}/files")).headers["etag"]
    await put(server, path, "a")
    url, content = f"{path}/package", archive({"b": b""})
    refused = await server.http.put(url, content=content, headers={**ZIP, "If-Match": tag})
    problem(refused, 412, "precondition_failed")
    now = (await server.http.get(f"{path}/files")).headers["etag"]
    taken = await server.http.put(url, content=content, headers={**ZIP, "If-Match": now})
    assert taken.status_code == 200


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 422, "validation_error"),
        (b"not a zip", 422, "validation_error"),
        (archive({"../../evil.py": b"x"}), 422, "validation_error"),
        (archive({"/abs": b"x"}), 422, "validation_error"),
        (archive({"link": b"/etc/passwd"}, mode=stat.S_IFLNK | 0o777), 422, "validation_error"),
        (archive({"a": b"1", "a/b": b"2"}), 422, "validation_error"),
        (archive({"bomb": b"\0" * 20 * MIB}), 413, "payload_too_large"),
        (archive({f"b{n}": b"\0" * MIB for n in range(33)}), 413, "payload_too_large"),
        (archive({f"f{n}": b"" for n in range(1001)}), 422, "validation_error"),
        (archive({f"f{n}": b"" for n in range(4001)}), 413, "payload_too_large"),
        (archive({"a": b"x"})[:-10], 422, "validation_error"),
    ],
    ids=[
        "empty",
        "text",
        "up",
        "absolute",
        "link",
        "clash",
        "bomb",
        "total",
        "files",
        "entries",
        "cut",
    ],
)
async def test_hostile_archives_change_nothing(
    server: Server, tmp_path: Path, content: bytes, status: int, code: str
) -> None:
    path = await make(server)
    await put(server, path, "keep.py", b"mine")
    answer = await server.http.put(f"{path}/package", content=content, headers=ZIP)
    problem(answer, status, code)
    assert await paths(server, path) == ["keep.py"]
    assert not (tmp_path.parent / "evil.py").exists()
    assert list((tmp_path / "blobs" / "unfinished").iterdir()) == []


async def test_other_types_of_archives_are_refused(server: Server) -> None:
    path = await make(server)
    answer = await server.http.put(f"{path}/package", content=b"x", headers={"Content-Type": "a/b"})
    problem(answer, 415, "unsupported_media_type")


# --- versions -------------------------------------------------------------------------------------


async def test_a_version_stays_as_it_was_whatever_happens_to_the_draft(server: Server) -> None:
    path = await make(server, template="payroll")
    before = await server.http.get(f"{path}/package")
    made = await server.http.post(f"{path}/versions")
    assert made.status_code == 201
    version = made.json()
    assert (version["sequence"], version["digest"]) == (
        1,
        before.headers["etag"].strip('"'),
    )
    assert made.headers["location"] == version["links"]["self"]
    assert (await server.http.post(f"{path}/versions")).json() == version
    await put(server, path, "config.toml", b"broken")
    await server.http.delete(f"{path}/files/columns/tax.py")
    second = (await server.http.post(f"{path}/versions")).json()
    assert second["sequence"] == 2
    assert (await server.http.get(version["links"]["package"])).content == before.content
    read = (await server.http.get(version["links"]["self"])).json()
    assert "columns/tax.py" in [file["path"] for file in read["files"]]
    listed = (await server.http.get(f"{path}/versions")).json()
    assert [one["sequence"] for one in listed["items"]] == [2, 1]
    page = (await server.http.get(f"{path}/versions", params={"limit": "1"})).json()
    rest = await server.http.get(f"{path}/versions", params={"cursor": page["next_cursor"]})
    assert [one["sequence"] for one in rest.json()["items"]] == [1]
    assert (await server.http.get(path)).json()["latest_version"] == second
    for missing in ("3", "0", "x", "99999999999"):
        answer = await server.http.get(f"{path}/versions/{missing}")
        assert answer.status_code in (404, 422)


async def test_many_snapshots_at_once_are_one_version(server: Server) -> None:
    path = await make(server, template="payroll")
    made = await asyncio.gather(*(server.http.post(f"{path}/versions") for _ in range(20)))
    assert {answer.status_code for answer in made} == {201}
    assert len({answer.json()["config_version_id"] for answer in made}) == 1


# --- roles and limits -----------------------------------------------------------------------------


async def test_viewers_look_and_editors_change(server: Server) -> None:
    path = await make(server, template="payroll")
    await server.http.post(f"{path}/versions")
    made = await server.http.post(f"{WS}/keys", json={"label": "v", "role": "viewer"})
    viewer = server.client(made.json()["key"])
    for look in ("", "/files", "/files/config.toml", "/package", "/versions", "/versions/1"):
        assert (await viewer.get(path + look)).status_code == 200
    for method, change in (
        ("POST", CONFIGURATIONS),
        ("DELETE", path),
        ("PUT", f"{path}/files/a"),
        ("DELETE", f"{path}/files/config.toml"),
        ("PUT", f"{path}/package"),
        ("POST", f"{path}/versions"),
        ("POST", f"{path}/validate"),
    ):
        problem(await viewer.request(method, change), 403, "forbidden")
        problem(await server.client().request(method, change), 401, "unauthenticated")


async def test_another_workspaces_configuration_is_not_there(server: Server) -> None:
    path = (await make(server, template="payroll")).replace("/default/", "/lab/")
    await server.http.post("/api/v1/workspaces", json={"slug": "lab", "name": "Lab"})
    for method, what in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/files"),
        ("GET", "/files/config.toml"),
        ("PUT", "/files/config.toml"),
        ("DELETE", "/files/config.toml"),
        ("GET", "/package"),
        ("POST", "/versions"),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("POST", "/validate"),
    ):
        problem(await server.http.request(method, path + what), 404, "not_found")
    answer = await server.http.put(f"{path}/package", content=archive({"a": b""}), headers=ZIP)
    problem(answer, 404, "not_found")


async def test_a_workspace_stores_as_much_as_it_may(serve: Serve) -> None:
    server = await serve(workspace_storage_mb=1)
    path = await make(server)
    half = MIB // 2
    assert (await put(server, path, "a", b"1" * half)).status_code == 201
    assert (await put(server, path, "b", b"1" * half)).status_code == 201
    documents = f"{WS}/documents"
    sent = await server.http.post(documents, files={"file": ("d", b"2" * half)})
    assert sent.status_code == 201
    problem(await put(server, path, "c", b"3"), 507, "storage_full")
    full = await server.http.post(documents, files={"file": ("d", b"3")})
    problem(full, 507, "storage_full")
    refused = await server.http.put(
        f"{path}/package", content=archive({"z": b"4" * (half + 1)}), headers=ZIP
    )
    problem(refused, 507, "storage_full")
    assert await paths(server, path) == ["a", "b"]
    await server.http.delete(sent.json()["links"]["self"])
    assert (await put(server, path, "c", b"3")).status_code == 201


async def test_nothing_is_loaded_where_nothing_is_run(server: Server, serve: Serve) -> None:
    path = await make(server, template="payroll")
    answer = await server.http.post(f"{path}/validate")
    found = problem(answer, 503, "unavailable")
    assert "run no jobs" in found["detail"]


async def _sent_in_pieces(server: Server, url: str, content: bytes) -> httpx.Response:
    async def pieces() -> Any:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    return await server.http.put(url, content=pieces(), headers=ZIP)


async def test_an_archive_in_pieces(server: Server) -> None:
    path = await make(server)
    content = archive({f"f{n}": bytes(range(256)) * 50 for n in range(30)})
    assert (await _sent_in_pieces(server, f"{path}/package", content)).status_code == 200
    assert len(await paths(server, path)) == 30
