"""Documents and configurations on a real server: kept over a crash, opened in the sandbox only."""

import io
from pathlib import Path
from typing import Any

import httpx
import openpyxl
from tests.system.server import KEY, Server, Start

WS = "/api/v1/workspaces/default"


def workbook() -> bytes:
    """Write a workbook."""
    made = openpyxl.Workbook()
    for row in (["Member", "Joined"], ["Ann", 2020], ["Bob", 2021]):
        made.active.append(row)
    written = io.BytesIO()
    made.save(written)
    return written.getvalue()


def upload(server: Server, content: bytes, name: str = "book.xlsx") -> dict[str, Any]:
    """Upload a document."""
    answer = server.http.post(f"{WS}/documents", files={"file": (name, content)})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def has_loaded(pid: int, library: str) -> bool:
    """Tell whether a process has a library in its memory."""
    return library in Path(f"/proc/{pid}/maps").read_text()


def test_documents_are_opened_in_the_sandbox_and_never_by_the_server(start: Start) -> None:
    server = start.server()
    made = upload(server, workbook())
    shown = server.http.get(made["links"]["preview"])
    assert shown.status_code == 200, shown.text
    assert shown.json()["rows"] == [["Member", "Joined"], ["Ann", 2020], ["Bob", 2021]]
    broken = upload(server, workbook()[:3000])
    answer = server.http.get(broken["links"]["preview"])
    assert (answer.status_code, answer.json()["code"]) == (422, "unreadable_document")
    for library in ("calamine", "polars", "numpy"):
        assert not has_loaded(server.pid, library)


def test_configurations_are_loaded_in_the_sandbox(start: Start) -> None:
    server = start.server()
    made = server.http.post(f"{WS}/configurations", json={"name": "c", "template": "payroll"})
    path = made.json()["links"]["self"]
    found = server.http.post(f"{path}/validate").json()
    assert found["valid"], found
    outside = start.folder / "was-here"
    code = (
        "import os, socket\n"
        "for reach in (\n"
        f"    lambda: open({str(outside)!r}, 'w'),\n"
        f"    lambda: open({str(start.data_dir / 'ade.db')!r}),\n"
        f"    lambda: os.kill({server.pid}, 0),\n"
        "    lambda: socket.create_connection(('127.0.0.1', 1)),\n"
        "):\n"
        "    try:\n"
        "        reach()\n"
        "    except OSError:\n"
        "        continue\n"
        "    raise KeyError('it reached something')\n"
        "raise RuntimeError('it reached nothing')\n"
    )
    server.http.put(f"{path}/files/columns/evil.py", content=code)
    found = server.http.post(f"{path}/validate").json()
    assert not found["valid"]
    (one,) = found["problems"]
    assert one["file"] == "columns/evil.py"
    assert "RuntimeError" in one["message"]
    assert not outside.exists()
    assert KEY not in str(found)
    assert server.http.get("/healthz").status_code == 200


def test_a_server_that_runs_no_jobs_opens_no_files(start: Start) -> None:
    server = start.command("serve", "--port", "0", "--no-worker")
    url = server.said(r"is ready: (http://[^/\s]+)")[1]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}) as http:
        made = http.post(f"{WS}/documents", files={"file": ("a.csv", b"a\n")}).json()
        answer = http.get(made["links"]["preview"])
        assert answer.status_code == 503
        assert "run no jobs" in answer.json()["detail"]
        assert http.get(made["links"]["content"]).content == b"a\n"


def test_what_was_accepted_is_there_after_a_crash(start: Start) -> None:
    server = start.server()
    content = workbook()
    made = upload(server, content)
    config = server.http.post(f"{WS}/configurations", json={"name": "c", "template": "payroll"})
    path = config.json()["links"]["self"]
    version = server.http.post(f"{path}/versions").json()
    package = server.http.get(f"{path}/package").content
    server.kill()
    again = start.server()
    assert again.http.get(made["links"]["content"]).content == content
    assert again.http.get(version["links"]["package"]).content == package
