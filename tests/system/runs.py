"""Runs on a real server: configurations and documents put there, runs started and waited for."""

import contextlib
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook
from tests.system.server import JOBS, Server

from ade_engine import examples
from ade_engine.entry.normalize import NormalizeRequest, normalize

BASE = "/api/v1/workspaces/default"
RUNS = f"{BASE}/runs"
TEMPLATE = "member_roster"
SAMPLE = examples.FOLDER / TEMPLATE / "samples" / "roster.csv"
Run = dict[str, Any]


def configured(
    server: Server, package: dict[str, str] | None = None, template: str | None = TEMPLATE
) -> str:
    """Make a configuration of a template, with these files in it instead; return its id."""
    named = {"name": "roster"} | ({"template": template} if template else {})
    answer = server.http.post(f"{BASE}/configurations", json=named)
    assert answer.status_code == 201, answer.text
    configuration_id = str(answer.json()["configuration_id"])
    for path, text in (package or {}).items():
        edited(server, configuration_id, path, text)
    return configuration_id


def edited(server: Server, configuration_id: str, path: str, text: str) -> None:
    """Write one file of a draft."""
    answer = server.http.put(
        f"{BASE}/configurations/{configuration_id}/files/{path}", content=text.encode()
    )
    assert answer.status_code in (200, 201, 204), answer.text


def uploaded(server: Server, content: bytes | None = None, name: str = "roster.csv") -> str:
    """Upload a document, the template's sample if none is given; return its id."""
    sent = SAMPLE.read_bytes() if content is None else content
    answer = server.http.post(f"{BASE}/documents", files={"file": (name, sent)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["document_id"])


def started(server: Server, configuration_id: str, document_id: str, **asked: Any) -> Run:
    """Start a run that must be accepted."""
    body = {"input_document_id": document_id, **asked}
    answer = server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def shown(server: Server, run: Run) -> Run:
    """Read a run."""
    answer = server.http.get(f"{RUNS}/{run['run_id']}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def job_of(run: Run) -> dict[str, str]:
    """Name the job of a run."""
    return {"job_id": run["run_id"]}


def ended(server: Server, run: Run) -> Run:
    """Wait for a run's end."""
    server.ended_job(job_of(run))
    return shown(server, run)


def ran(server: Server, configuration_id: str, document_id: str, **asked: Any) -> Run:
    """Run to the end."""
    return ended(server, started(server, configuration_id, document_id, **asked))


def succeeded(server: Server, configuration_id: str, document_id: str, **asked: Any) -> Run:
    """Run to an end that must be good."""
    run = ran(server, configuration_id, document_id, **asked)
    assert run["status"] == "succeeded", run["error"]
    return run


def output(server: Server, run: Run, folder: Path) -> dict[str, list[list[Any]]]:
    """Download what a run wrote; return its cells."""
    answer = server.http.get(f"{JOBS}/{run['run_id']}/output")
    assert answer.status_code == 200, answer.text
    path = folder / f"{run['run_id']}.xlsx"
    path.write_bytes(answer.content)
    return cells(path)


def cells(path: Path) -> dict[str, list[list[Any]]]:
    """Read every cell of a workbook."""
    with CalamineWorkbook.from_path(str(path)) as book:
        return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def expected(folder: Path, content: bytes | None = None) -> dict[str, list[list[Any]]]:
    """Return the cells that the engine alone makes of the template and a document."""
    document = folder / "expected.csv"
    document.write_bytes(SAMPLE.read_bytes() if content is None else content)
    with contextlib.redirect_stdout(None):  # the template prints
        normalize(NormalizeRequest(document, examples.FOLDER / TEMPLATE, folder / "expected"))
    return cells(folder / "expected" / "normalized.xlsx")
