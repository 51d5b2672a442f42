"""How jobs fail: one cell for each category and code, over HTTP, held against the schema.

What cannot be brought about from outside (a lost lease, a dead zygote, a full disk) has its tests
where it happens; the last test here knows of each.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jsonschema_rs
import pytest
from tests.system.cells import cell
from tests.system.server import JOBS, Server, starting

from ade.domain.outcome import Category

ROOT = Path(__file__).parents[2]
RESULT = json.loads((ROOT / "docs" / "reference" / "schemas" / "result.json").read_text())
ERRORS = ROOT / "docs" / "reference" / "errors.md"
NEVER = "0" * 64


class Case(NamedTuple):
    """Hold a cell that fails, and how."""

    category: str
    code: str
    source: str
    limits: dict[str, int] | None = None
    status: str = "FAILED"
    place: tuple[int, int] | None = None
    datasets: tuple[dict[str, str], ...] = ()


THREADS = """
import threading
while True:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
ONE_FILE = """
with open('f', 'wb') as file:
    while True: file.write(bytes(1 << 20))
"""
MANY_FILES = """
number = 0
while True:
    number += 1
    open(f'{number}', 'wb').write(bytes(1 << 20))
"""
MOUNT = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b'a', b'/job', b'tmpfs', 0, None):
    raise OSError(ctypes.get_errno(), 'mount')
"""

CASES = [
    Case("USER_CODE_ERROR", "PYTHON_EXCEPTION", "x = 1\nx / 0", place=(2, 1)),
    Case("USER_CODE_ERROR", "PYTHON_EXCEPTION", "assert 1 == 2", place=(1, 8)),
    Case("USER_CODE_ERROR", "PYTHON_EXCEPTION", "def main(a):\n    pass"),
    Case("USER_CODE_ERROR", "PYTHON_EXCEPTION", "(1,", place=(1, 1)),
    Case("USER_CODE_ERROR", "KILLED_BY_SIGNAL", "import ctypes\nctypes.string_at(0)"),
    Case("USER_CODE_ERROR", "EXITED_WITHOUT_RESULT", "import os\nos._exit(0)"),
    Case("USER_CODE_ERROR", "EXITED_WITHOUT_RESULT", "import sys\nsys.exit(3)"),
    Case("USER_CODE_ERROR", "BAD_RESULT", "a = []\na.append(a)\na"),
    Case("RESOURCE_LIMIT", "CPU_LIMIT", "while True: pass", {"cpu_ms": 200}),
    Case(
        "RESOURCE_LIMIT",
        "MEMORY_LIMIT",
        "a = []\nwhile True: a.append(bytearray(1 << 20))",
        {"memory_mb": 64},
    ),
    Case(
        "RESOURCE_LIMIT",
        "TIMED_OUT",
        "import time\ntime.sleep(60)",
        {"timeout_ms": 300},
        status="TIMED_OUT",
    ),
    Case("RESOURCE_LIMIT", "OUTPUT_LIMIT", "while True: print('x' * 1000)"),
    Case("RESOURCE_LIMIT", "RESULT_TOO_LARGE", "'x' * 3_000_000"),
    Case(
        "RESOURCE_LIMIT",
        "PROCESS_LIMIT",
        THREADS,
    ),
    Case("RESOURCE_LIMIT", "OPEN_FILES_LIMIT", "a = []\nwhile True: a.append(open('f', 'w'))"),
    Case(
        "RESOURCE_LIMIT",
        "FILE_SIZE_LIMIT",
        "with open('f', 'wb') as f:\n    while True: f.write(bytes(1 << 20))",
        {},
    ),
    Case(
        "RESOURCE_LIMIT",
        "DISK_LIMIT",
        MANY_FILES,
    ),
    Case(
        "RESOURCE_LIMIT",
        "ARTIFACT_LIMIT",
        "open('artifacts/a', 'w')\nopen('artifacts/b', 'w')",
        {"max_artifacts": 1},
    ),
    Case("SANDBOX_VIOLATION", "OPERATION_DENIED", "import socket\nsocket.socket()"),
    Case("SANDBOX_VIOLATION", "OPERATION_DENIED", "open('/etc/new', 'w')"),
    Case(
        "SANDBOX_VIOLATION",
        "OPERATION_DENIED",
        MOUNT,
    ),
    Case("DEPENDENCY_ERROR", "MODULE_NOT_FOUND", "import not_installed_anywhere"),
    Case(
        "DEPENDENCY_ERROR",
        "DEPENDENCY_NOT_FOUND",
        "1",
        datasets=({"kind": "dataset", "digest": f"sha256:{NEVER}"},),
    ),
]
# Reached where they happen: unit tests of worker, exit status and builds, tests of faults, and
# the conformance tests of agents.
ELSEWHERE = {
    "FAILED_WITHOUT_WORDS", "VALIDATION_ERROR", "BUILD_FAILED", "PACKAGES_NOT_INSTALLED",
    "REQUIREMENTS_REFUSED", "FILES_GONE", "BUILD_TIMED_OUT", "BUILDER_LOST", "ENVIRONMENT_GONE",
    "BUILDER_ERROR", "STORAGE_FULL", "KILLED_BY_OS", "SANDBOX_UNAVAILABLE", "SANDBOX_SETUP",
    "WATCH_LOST", "ZYGOTE_LOST", "STOPPED", "UNAVAILABLE", "WORKER_ERROR", "WORKER_STOPPED",
    "LEASE_LOST", "RESULT_TOO_DEEP", "EVALUATION_FAILED", "ENTRYPOINT_NOT_FOUND",
    "PACKAGE_NOT_IMPORTABLE", "CONTAINER_FAILED", "AGENT_LOST", "AGENT_FAILED",
    "FAILED_BY_OPERATOR", "RESULT_REFUSED", "CONTAINER_NOT_STARTED", "CONTAINER_OUT_OF_MEMORY",
    "IMAGE_UNAVAILABLE", "AGENT_RESTARTED",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all cells."""
    folder = tmp_path_factory.mktemp("categories")
    with starting(folder, ADE_LOG_LEVEL="warning", ADE_WORKER_FSIZE_MB=8) as start:
        yield start.server()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.source[:20]!r}")
def test_each_end_has_its_category_and_code(server: Server, case: Case) -> None:
    body = cell(case.source, limits=case.limits)
    body["inputs"]["datasets"] = list(case.datasets)
    answer = server.http.post(JOBS, json=body, headers={"Prefer": "wait=60"}, timeout=90)
    assert answer.status_code == 200, answer.text
    job = answer.json()
    found = server.result(job)
    assert (found["status"], found["error"]["category"], found["error"]["code"]) == (
        case.status,
        case.category,
        case.code,
    ), found["error"]
    jsonschema_rs.validate(RESULT, found)
    assert found["started_at"] <= found["finished_at"]
    assert found["duration_ms"] >= 0
    assert found["env_version"].startswith("python-cell@")
    assert job["attempt"] == 1  # nothing of this is tried again
    assert len(json.dumps(found)) < 1_000_000
    details = found["error"]["details"]
    if case.place is not None:
        assert (details["file"], details["line"], details["column"]) == ("cell.py", *case.place)


def test_a_success_fits_the_schema_too(server: Server) -> None:
    source = "print('seen')\nopen('artifacts/a.txt', 'w').write('kept')\n{'value': [1, None, 2.5]}"
    answer = server.http.post(JOBS, json=cell(source), headers={"Prefer": "wait=60"}, timeout=90)
    found = server.result(answer.json())
    jsonschema_rs.validate(RESULT, found)
    assert found["status"] == "SUCCEEDED"
    assert "error" not in found


def test_streams_are_cut_and_marked(server: Server) -> None:
    source = "import sys\nprint('a' * 5000)\nprint('b' * 5000, file=sys.stderr)"
    body = cell(source, limits={"max_output_kb": 1})
    answer = server.http.post(JOBS, json=body, headers={"Prefer": "wait=60"}, timeout=90)
    outputs = server.result(answer.json())["outputs"]
    for stream, letter in (("stdout", "a"), ("stderr", "b")):
        assert len(outputs[stream].encode()) < 1024 + 100
        assert outputs[stream].startswith(letter)
        assert "cut" in outputs[stream] or "left out" in outputs[stream], outputs[stream][-100:]


def test_every_code_is_tested_here_or_where_it_happens() -> None:
    table = ERRORS.read_text().partition("## Errors of jobs")[2]
    documented = {
        line.split("`")[1] for line in table.splitlines() if line.startswith("| `") and "`" in line
    }
    categories = {category.value for category in Category}
    reached = {case.code for case in CASES}
    assert documented - categories - reached == ELSEWHERE - categories
    # The other two are not the cell's doing.
    here = categories - {Category.VALIDATION_ERROR, Category.INTERNAL_ERROR}
    assert {case.category for case in CASES} == here
