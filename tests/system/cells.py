"""Cells of Python for a real server: asked for, waited for, read."""

import os
from typing import Any

from tests.system.server import JOBS, Server

WAIT = {"Prefer": "wait=60"}


def cell(source: str, *, limits: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """Ask for a cell that is no one else's; what is not an input goes beside the inputs."""
    own = ("parameters", "entrypoint", "requirements")
    inputs = {name: more.pop(name) for name in own if name in more}
    body: dict[str, Any] = {
        "job_type": "object_execute",
        "document_revision_id": os.urandom(8).hex(),
        "inputs": {"source": source, **inputs},
        **more,
    }
    return body | ({"limits": limits} if limits else {})


def run(server: Server, source: str, **asked: Any) -> dict[str, Any]:
    """Run a cell to its end; return its result, with the job as `job`."""
    answer = server.http.post(JOBS, json=cell(source, **asked), headers=WAIT, timeout=90)
    assert answer.status_code == 200, answer.text
    job = answer.json()
    return server.result(job) | {"job": job}


def value(server: Server, source: str, **asked: Any) -> Any:
    """Run a cell that must succeed; return its value."""
    found = run(server, source, **asked)
    assert found["status"] == "SUCCEEDED", found["error"]
    return found["outputs"]["result_json"]


def error(server: Server, source: str, **asked: Any) -> dict[str, Any]:
    """Run a cell that must fail; return its error."""
    found = run(server, source, **asked)
    assert found["status"] != "SUCCEEDED", found["outputs"]
    return dict(found["error"])


def begin(server: Server, source: str, **asked: Any) -> dict[str, Any]:
    """Submit a cell and do not wait."""
    answer = server.http.post(JOBS, json=cell(source, **asked))
    assert answer.status_code == 202, answer.text
    return dict(answer.json())
