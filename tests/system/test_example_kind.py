"""A third party's kind: installed from `examples/`, found by entry point, run in the sandbox."""

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.system.server import JOBS, Server, starting

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "word-count"
UV = ROOT / ".uv" / "bin" / "uv"
INSTALL = (
    UV,
    "pip",
    "install",
    "--quiet",
    "--no-deps",
    "--no-build-isolation",
    "--offline",
    "--python",
    sys.executable,
)
TEXT = b"to be or not to be\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Install the example beside ADE, where its other packages are not touched, and serve."""
    packages = tmp_path_factory.mktemp("installed")
    packages.chmod(0o755)  # as packages are: jobs run as separate users
    installed = subprocess.run(
        [*INSTALL, "--target", packages, EXAMPLE],
        capture_output=True,
        text=True,
    )
    assert installed.returncode == 0, installed.stderr
    with starting(tmp_path_factory.mktemp("data"), PYTHONPATH=packages) as start:
        yield start.server()


def count(server: Server, digest: str, **more: Any) -> dict[str, Any]:
    """Ask for the words of a text and wait."""
    body = {
        "job_type": "word_count",
        "document_revision_id": "r1",
        "inputs": {"digest": digest, "at_least": 2},
        **more,
    }
    answer = server.http.post(JOBS, json=body, headers={"Prefer": "wait=60"}, timeout=90)
    assert answer.status_code == 200, answer.text
    return server.result(answer.json())


@pytest.fixture(scope="module")
def text(server: Server) -> str:
    """Store a text; return its digest."""
    documents = JOBS.replace("/jobs", "/documents")
    answer = server.http.post(documents, files={"file": ("text.txt", TEXT)})
    return str(answer.json()["digest"])


def test_it_counts_and_leaves_a_table(server: Server, text: str) -> None:
    found = count(server, text)
    assert found["status"] == "SUCCEEDED", found["error"]
    assert found["outputs"]["result_json"] == {"words": 6, "distinct": 4, "kept": 2}
    assert found["env_version"] == "word-count@1"
    (table,) = found["artifacts"]
    assert (table["name"], table["kind"], table["metadata"]) == ("words.csv", "table", {"rows": 2})
    link = server.http.get(f"/api/v1/artifacts/{table['artifact_id']}/url").json()["url"]
    rows = list(csv.reader(io.StringIO(httpx.get(link).text)))
    assert rows == [["word", "count"], ["to", "2"], ["be", "2"]]


def test_it_is_bound_as_every_kind_is(server: Server, text: str) -> None:
    body = {
        "job_type": "word_count",
        "document_revision_id": "r1",
        "inputs": {"digest": text, "at_least": 2},
    }
    waiting = {"Prefer": "wait=60"}
    _, job = (server.http.post(JOBS, json=body, headers=waiting).json() for _ in range(2))
    assert job["deduplicated"]
    assert "seccomp" in job["isolation"]
    refused = server.http.post(
        JOBS, json={"job_type": "word_count", "document_revision_id": "r1", "inputs": {}}
    )
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "inputs.digest")
    schema = server.http.get("/api/v1/schemas/payload/word_count.json").json()
    assert schema["properties"]["job_type"] == {"const": "word_count"}


def test_its_own_errors_are_those_of_its_code(server: Server, text: str) -> None:
    documents = JOBS.replace("/jobs", "/documents")
    answer = server.http.post(documents, files={"file": ("odd", b"\xff\xfe")})
    found = count(server, answer.json()["digest"])
    assert (found["error"]["category"], found["error"]["code"]) == (
        "USER_CODE_ERROR",
        "PYTHON_EXCEPTION",
    )
    assert "byte 0 is not UTF-8" in found["error"]["message"]
    missing = count(server, "sha256:" + "0" * 64)
    assert missing["error"]["category"] == "DEPENDENCY_ERROR"
