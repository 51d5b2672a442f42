"""What cells work on and leave: datasets, other objects, figures, tables, files and their links."""

import csv
import hashlib
import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.system.cells import cell, error, run, value
from tests.system.server import JOBS, KEY, Server, Start, starting

from ade.domain.keys import digest

WAIT = {"Prefer": "wait=60"}
DOCUMENTS = JOBS.replace("/jobs", "/documents")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module."""
    with starting(tmp_path_factory.mktemp("files"), ADE_LOG_LEVEL="warning") as start:
        yield start.server()


def uploaded(server: Server, content: bytes) -> str:
    """Keep a document; return its digest."""
    answer = server.http.post(DOCUMENTS, files={"file": ("prices.csv", content)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["digest"])


def executed(server: Server, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run a cell given as an object; return its result."""
    body = cell("", **more) | {"inputs": inputs}
    answer = server.http.post(JOBS, json=body, headers=WAIT, timeout=90)
    assert answer.status_code == 200, answer.text
    return server.result(answer.json())


# --- what a cell works on -------------------------------------------------------------------------


def test_datasets_are_found_by_digest_and_by_name(server: Server) -> None:
    known = uploaded(server, b"price\n19\n23\n")
    code = {
        "content": {
            "format": "python",
            "value": "rows = open(datasets['prices']).read().split()\n"
            "[rows, datasets['prices'] == datasets[digest]]",
        },
        "dependencies": [{"kind": "dataset", "digest": known, "name": "prices"}],
        "runtime": {"parameters": {"digest": known}},
    }
    result = executed(server, {"object": code})
    assert result["outputs"]["result_json"] == [["price", "19", "23"], True]


def test_an_artifact_of_one_cell_is_a_dataset_of_another(server: Server) -> None:
    first = run(server, "open('artifacts/n.txt', 'w').write('41')")
    made = first["artifacts"][0]["digest"]
    source = f"int(open(datasets['{made}']).read()) + 1"
    inputs = {"source": source, "datasets": [{"kind": "dataset", "digest": made}]}
    assert executed(server, inputs)["outputs"]["result_json"] == 42


def test_a_dataset_that_is_not_there_is_a_dependency_error(server: Server) -> None:
    absent = "sha256:" + "0" * 64
    inputs = {"source": "1", "datasets": [{"kind": "dataset", "digest": absent}]}
    found = executed(server, inputs)
    assert (found["error"]["category"], found["error"]["code"]) == (
        "DEPENDENCY_ERROR",
        "DEPENDENCY_NOT_FOUND",
    )
    assert absent in found["error"]["message"]


def test_a_digest_is_no_right_to_the_bytes_of_another_workspace(server: Server) -> None:
    known = uploaded(server, b"not for others")
    other = server.http.post("/api/v1/workspaces", json={"slug": "other", "name": "Other"})
    assert other.status_code == 201, other.text
    body = cell("open(list(datasets.values())[0]).read()")
    body["inputs"]["datasets"] = [{"kind": "dataset", "digest": known}]
    answer = server.http.post(JOBS.replace("default", "other"), json=body, headers=WAIT, timeout=90)
    assert answer.json()["error"]["code"] == "DEPENDENCY_NOT_FOUND"


def test_pinned_objects_are_run_before_the_cell(server: Server) -> None:
    content = {"format": "python", "value": "RATE = 21\ndef double(x):\n    return 2 * x"}
    snapshot = {"kind": "object", "id": "o", "content_digest": digest(content), "content": content}
    code = {
        "content": {"format": "python", "value": "double(RATE)"},
        "dependencies": [{"kind": "object", "id": "o"}],
    }
    result = executed(server, {"object": code, "dependency_snapshots": [snapshot]})
    assert result["outputs"]["result_json"] == 42


def test_an_error_names_the_block_that_it_was_in(server: Server) -> None:
    blocks = [
        {"type": "heading", "text": "Shares"},
        {"type": "code", "language": "python", "text": "def share(parts):\n    return 1 / parts"},
        {"type": "code", "language": "python", "text": "share(0)"},
    ]
    content = {"format": "blockdoc", "value": {"blocks": blocks}}
    found = executed(server, {"object": {"content": content}})
    details = found["error"]["details"]
    assert (details["file"], details["line"], details["column"]) == ("cell-block-2.py", 2, 12)
    assert "cell-block-3.py" in details["traceback"]


def test_the_result_comes_with_the_answer_if_that_is_wanted(server: Server) -> None:
    wishes = {"Prefer": "return=representation, wait=60", "Idempotency-Key": "with-result"}
    body = cell("20 + 22")
    answer = server.http.post(JOBS, json=body, headers=wishes, timeout=90)
    assert answer.headers["Preference-Applied"] == "wait=60, return=representation"
    job = answer.json()
    assert job.pop("result") == server.result(job)
    assert server.result(job)["outputs"]["result_json"] == 42
    again = server.http.post(JOBS, json=body, headers=wishes, timeout=90)
    assert (again.headers["Idempotency-Replayed"], again.json()) == ("true", answer.json())
    plain = server.http.post(JOBS, json=body, headers={"Prefer": "wait=60"}, timeout=90)
    assert "result" not in plain.json()


# --- what a cell leaves ---------------------------------------------------------------------------

FIGURE = """
import matplotlib.pyplot as plt
plt.figure(figsize=(4, 3), dpi=100)
plt.plot([1, 2, 3], [2, 1, 3])
"""


def test_open_figures_become_artifacts(server: Server) -> None:
    formats = {"formats": ["json", "png", "svg"]}
    found = run(server, FIGURE, output_spec=formats)
    assert found["status"] == "SUCCEEDED", found["error"]
    kept = {one["name"]: one for one in found["artifacts"]}
    assert sorted(kept) == ["figure-1.png", "figure-1.svg"]
    assert {one["kind"] for one in kept.values()} == {"plot"}
    assert kept["figure-1.png"]["metadata"] == {"width": 400, "height": 300, "order": 1}
    png = content(server, kept["figure-1.png"])
    assert struct.unpack(">II", png[16:24]) == (400, 300)
    again = run(server, FIGURE, output_spec=formats)
    assert {one["digest"] for one in again["artifacts"]} == {one["digest"] for one in kept.values()}


def test_no_unwanted_figure_is_drawn(server: Server) -> None:
    assert run(server, FIGURE, output_spec={"formats": ["json"]})["artifacts"] == []


def test_a_table_is_a_result_and_a_file(server: Server) -> None:
    found = run(server, "import polars\npolars.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
    assert found["outputs"]["result_json"] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    kept, parquet = found["artifacts"]
    assert (kept["name"], kept["kind"], kept["metadata"]) == (
        "result.csv",
        "table",
        {"rows": 2, "columns": 2, "order": 1},
    )
    assert (parquet["name"], parquet["metadata"]["order"]) == ("result.parquet", 2)
    rows = list(csv.reader(io.StringIO(content(server, kept).decode())))
    assert rows == [["a", "b"], ["1", "x"], ["2", "y"]]


def test_a_long_table_is_summed_up_in_the_result(server: Server) -> None:
    found = run(server, "import polars\npolars.DataFrame({'n': range(5000)})")
    report = found["outputs"]["result_json"]
    assert (report["rows"], report["columns"], report["artifact"]) == (5000, ["n"], "result.csv")
    assert report["head"][:2] == [{"n": 0}, {"n": 1}]
    assert content(server, found["artifacts"][0]).count(b"\n") == 5001


def test_unwanted_streams_are_left_out(server: Server) -> None:
    source = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
    found = run(server, source, output_spec={"return_stdout": False})
    assert (found["outputs"]["stdout"], found["outputs"]["stderr"]) == ("", "err\n")


def test_too_many_artifacts_are_no_success(server: Server) -> None:
    source = "for n in range(4): open(f'artifacts/{n}', 'w').write(str(n))"
    found = run(server, source, limits={"max_artifacts": 3})
    assert (found["error"]["category"], found["error"]["code"]) == (
        "RESOURCE_LIMIT",
        "ARTIFACT_LIMIT",
    )
    assert [one["name"] for one in found["artifacts"]] == ["0", "1", "2"]


def test_a_full_workspace_keeps_nothing_more(tmp_path: Any) -> None:
    with starting(tmp_path, ADE_WORKSPACE_STORAGE_MB=1) as start:
        server = start.server()
        found = error(server, "open('artifacts/big', 'wb').write(bytes(2_000_000))")
        assert (found["category"], found["code"]) == ("RESOURCE_LIMIT", "STORAGE_FULL")
        assert value(server, "open('artifacts/small', 'wb').write(bytes(2000))") == 2000


# --- what a cell says ----------------------------------------------------------------------------


def strictly(text: str) -> Any:
    """Read JSON as strict readers do."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_cell_cannot_put_what_is_no_json_into_the_answers_of_others(server: Server) -> None:
    source = r"""
import os
os.write(3, b'\n{"progress": {"done": 1e999, "total": 3}}\n')
os.write(3, b'{"progress": {"done": [1], "total": 3, "message": 7, "more": 1}}\n')
open("artifacts/a.txt", "w").write("x")
os.write(3, b'{"artifact": {"name": "a.txt", "kind": "<b>", "metadata": {"n": 1e999}}}\n')
os.write(3, b'{"artifact": {"name": "a.txt", "kind": "note", "metadata": {"deep": [1], "n": 2}}}\n')
"""
    found = run(server, source)
    assert found["status"] == "SUCCEEDED", found
    assert (found["artifacts"][0]["kind"], found["artifacts"][0]["metadata"]) == ("note", {"n": 2})
    for path in (f"{JOBS}/{found['job']['job_id']}", f"{JOBS}?limit=200"):
        strictly(server.http.get(path).text)
    job = strictly(server.http.get(f"{JOBS}/{found['job']['job_id']}").text)
    assert job["progress"] in (None, {"done": 0, "total": 3, "message": ""})


def test_the_details_of_an_error_are_bounded_whatever_a_cell_says(server: Server) -> None:
    source = r"""
import json, os
deep = {}
for _ in range(500): deep = {"deep": deep}
details = {"line": "evil", "column": 3, "huge": "x" * 900_000, "deep": deep}
failure = {"type": "X", "declared": {"code": "mine", "message": "m" * 9000, "details": details}}
os.write(3, b"\n" + json.dumps({"failure": failure}).encode() + b"\n")
os._exit(1)
"""
    found = error(server, source)
    assert (found["category"], found["code"]) == ("VALIDATION_ERROR", "MINE")
    assert len(json.dumps(found)) < 40_000
    assert "line" not in found["details"]
    assert found["details"]["column"] == 3


def test_a_wrong_call_of_main_names_where_main_is(server: Server) -> None:
    found = error(server, "x = 1\n\ndef main(price):\n    return price", parameters={"cost": 1})
    place = {name: found["details"][name] for name in ("file", "line", "function", "type")}
    assert place == {"file": "cell.py", "line": 3, "function": "main", "type": "TypeError"}
    assert "missing a required argument: 'price'" in found["message"]
    assert "ade_engine" not in json.dumps(found)


def test_main_may_have_to_be_waited_for(server: Server) -> None:
    source = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 42"
    assert value(server, source) == 42


# --- links ----------------------------------------------------------------------------------------


def link(server: Server, artifact: dict[str, Any]) -> dict[str, Any]:
    """Ask for a signed link."""
    answer = server.http.get(f"/api/v1/artifacts/{artifact['artifact_id']}/url")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def content(server: Server, artifact: dict[str, Any]) -> bytes:
    """Read an artifact by its link, without a key."""
    answer = httpx.get(link(server, artifact)["url"])
    assert answer.status_code == 200, answer.text
    assert f"sha256:{hashlib.sha256(answer.content).hexdigest()}" == artifact["digest"]
    return answer.content


@pytest.fixture(scope="module")
def kept(server: Server) -> dict[str, Any]:
    """Leave an untrusted page."""
    source = "open('artifacts/page.html', 'w').write('<script>alert(1)</script>')"
    return dict(run(server, source)["artifacts"][0])


def test_a_link_needs_no_key_and_shows_nothing_in_a_browser(
    server: Server, kept: dict[str, Any]
) -> None:
    answer = httpx.get(link(server, kept)["url"])
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["etag"] == f'"{kept["digest"]}"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_link_gives_ranges_and_knows_what_the_caller_has(
    server: Server, kept: dict[str, Any]
) -> None:
    url = link(server, kept)["url"]
    part = httpx.get(url, headers={"Range": "bytes=1-6"})
    assert (part.status_code, part.text) == (206, "script")
    assert httpx.get(url, headers={"If-None-Match": f'"{kept["digest"]}"'}).status_code == 304
    head = httpx.head(url)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "25", b"")


def test_a_link_that_was_altered_is_refused(server: Server, kept: dict[str, Any]) -> None:
    url = httpx.URL(link(server, kept)["url"])
    expires, signature = int(url.params["expires"]), url.params["signature"]
    other = run(server, "open('artifacts/other', 'w').write('other')")["artifacts"][0]
    altered = [
        url.copy_set_param("expires", expires + 1),
        url.copy_set_param("signature", signature[:-1] + ("A" if signature[-1] != "A" else "B")),
        url.copy_set_param("signature", ""),
        url.copy_set_param("signature", "é"),
        url.copy_with(path=f"/api/v1/artifacts/{other['artifact_id']}/content"),
    ]
    answers = [httpx.get(one) for one in altered]
    assert [answer.status_code for answer in answers] == [403] * len(altered)
    assert {answer.json()["code"] for answer in answers} == {"forbidden"}
    assert httpx.get(url.copy_remove_param("signature")).status_code == 401


def test_a_link_is_over_at_its_time(tmp_path: Any) -> None:
    with starting(tmp_path, ADE_SIGNED_URL_SECONDS=1) as start:
        server = start.server()
        kept = run(server, "open('artifacts/a', 'w').write('a')")["artifacts"][0]
        url = link(server, kept)["url"]
        seen = {httpx.get(url).status_code}
        while 403 not in seen:  # the server's own clock says when
            seen.add(httpx.get(url).status_code)
        assert seen <= {200, 403}


def test_links_of_one_server_work_on_another_and_after_a_restart(
    start_on_postgres: Start,
) -> None:
    one, other = start_on_postgres.server(), start_on_postgres.server()
    kept = run(one, "open('artifacts/a', 'w').write('shared')")["artifacts"][0]
    url = httpx.URL(link(one, kept)["url"])
    there = other.http.base_url.copy_with(path=url.path, query=url.query)
    assert httpx.get(there).text == "shared"
    other.kill()
    third = start_on_postgres.server()
    again = third.http.base_url.copy_with(path=url.path, query=url.query)
    assert httpx.get(again).text == "shared"


def test_artifacts_of_another_workspace_are_not_there(server: Server, kept: dict[str, Any]) -> None:
    made = server.http.post("/api/v1/workspaces", json={"slug": "apart", "name": "Apart"})
    assert made.status_code == 201
    keys = server.http.post(
        "/api/v1/workspaces/apart/keys", json={"label": "theirs", "role": "admin"}
    )
    theirs = {"Authorization": f"Bearer {keys.json()['key']}"}
    for name in ("url", "content"):
        place = server.http.base_url.join(f"/api/v1/artifacts/{kept['artifact_id']}/{name}")
        assert httpx.get(place, headers=theirs).status_code == 404
        assert httpx.get(place).status_code == 401
        mine = httpx.get(place, headers={"Authorization": f"Bearer {KEY}"})
        assert mine.status_code == 200


def test_a_run_again_leaves_its_own_artifacts(server: Server) -> None:
    first = run(server, "import os\nopen('artifacts/a', 'wb').write(os.urandom(8))")
    job_id = first["job"]["job_id"]
    again = server.http.post(f"{JOBS}/{job_id}/retry").json()
    second = server.ended_job(again)
    listed = server.http.get(f"{JOBS}/{second['job_id']}/artifacts").json()
    assert listed[0]["artifact_id"] != first["artifacts"][0]["artifact_id"]
    assert json.loads(json.dumps(listed)) == server.result(second)["artifacts"]
