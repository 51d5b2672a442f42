"""Previews and checks: what an inline task brings back, as the API tells it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.api.catalogue import started, uploaded
from tests.api.conftest import Serve
from tests.api.server import Server, problem
from tests.api.test_configurations import make, put
from tests.api.test_documents import DOCUMENTS, upload

from ade.domain.job import Status
from ade.domain.outcome import Category, JobError, Outcome
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.worker.inline_tasks import InlineTasks
from ade.worker.subprocess_runner import SubprocessRunner

pytestmark = pytest.mark.slow

FIELD = b"FIELD = Field(label='A')\n"


class Staged:
    """Bring back what a test puts into its mouth: what a hostile file might make a reader say."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    async def run(
        self,
        workspace_id: str,
        entry: str,
        inputs: dict[str, Any],
        files: Mapping[str, Path],
        environment: str | None = None,
    ) -> Outcome:
        """Run nothing."""
        return self.outcome


def says(value: Any) -> Staged:
    """Bring back a result."""
    return Staged(Outcome(Status.SUCCEEDED, {"outputs": {"result_json": value}}))


def fails(category: Category, message: str = "m", **details: Any) -> Staged:
    """Bring back an error."""
    return Staged(Outcome(Status.FAILED, error=JobError(category, "CODE", message, details)))


@pytest.fixture
async def running(serve: Serve) -> Server:
    """Open a server that runs inline tasks in plain child processes."""
    return await serve(inline_tasks=InlineTasks(SubprocessRunner()))


# --- previews -------------------------------------------------------------------------------------


async def test_a_preview_shows_the_first_rows(running: Server) -> None:
    made = await upload(running, b"name;age\nAnn;31\nBob;32\n")
    path = made["links"]["preview"]
    shown = (await running.http.get(path)).json()
    assert shown["document_id"] == made["document_id"]
    assert shown["rows"] == [["name", "age"], ["Ann", "31"], ["Bob", "32"]]
    first = (await running.http.get(path, params={"rows": "1"})).json()
    assert first["rows"] == [["name", "age"]]
    missing = await running.http.get(path, params={"sheet": "no"})
    assert problem(missing, 422, "validation_error")["errors"][0]["field"] == "sheet"
    for rows in ("0", "201", "x"):
        problem(await running.http.get(path, params={"rows": rows}), 422, "validation_error")
    unreadable = await upload(running, b"")
    found = problem(
        await running.http.get(unreadable["links"]["preview"]), 422, "unreadable_document"
    )
    assert found["errors"][0]["code"] == "empty_file"
    problem(await running.http.get(f"{DOCUMENTS}/nope/preview"), 404, "not_found")


async def test_a_process_that_runs_nothing_opens_nothing(server: Server, serve: Serve) -> None:
    made = await upload(server)
    found = problem(await server.http.get(made["links"]["preview"]), 503, "unavailable")
    assert "run no jobs" in found["detail"]
    safe = await serve(rules=KernelSettings(queue_size=0, safe_mode=True))
    found = problem(await safe.http.get(made["links"]["preview"]), 503, "unavailable")
    assert "ADE_SAFE_MODE" in found["detail"]


async def test_a_document_that_has_no_room_is_not_previewed(serve: Serve) -> None:
    server = await serve(inline_tasks=says({}), worker_disk_mb=1)
    made = await upload(server, b"x" * (900 * 1024))
    problem(await server.http.get(made["links"]["preview"]), 422, "unreadable_document")


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        "text",
        {},
        {"rows": 1},
        {"error": 1},
        {"error": {"code": "x"}},
        {"error": {"code": "x" * 1000, "message": "m"}},
        {"error": {"code": "x", "message": "m" * 10_000}},
    ],
)
async def test_what_a_hostile_file_says_is_not_believed(serve: Serve, said: Any) -> None:
    server = await serve(inline_tasks=says(said))
    made = await upload(server)
    found = problem(await server.http.get(made["links"]["preview"]), 422, "unreadable_document")
    assert len(found["detail"]) < 200


@pytest.mark.parametrize(
    ("category", "status", "code"),
    [
        (Category.INTERNAL_ERROR, 503, "unavailable"),
        (Category.RESOURCE_LIMIT, 422, "unreadable_document"),
        (Category.USER_CODE_ERROR, 422, "unreadable_document"),
        (Category.SANDBOX_VIOLATION, 422, "unreadable_document"),
    ],
)
async def test_a_reader_that_crashes_is_reported(
    serve: Serve, category: Category, status: int, code: str
) -> None:
    server = await serve(inline_tasks=fails(category, "/secret/path"))
    made = await upload(server)
    found = problem(await server.http.get(made["links"]["preview"]), status, code)
    assert "secret" not in found["detail"]


# --- checks ---------------------------------------------------------------------------------------


async def test_a_template_is_valid(running: Server) -> None:
    path = await make(running, template="payroll")
    found = (await running.http.post(f"{path}/validate")).json()
    assert found["valid"], found["problems"]
    assert {"field": "net_pay", "label": "Net pay"} in found["fields"]
    files = await running.http.get(f"{path}/files")
    assert found["digest"] == files.json()["digest"]


async def test_problems_name_file_and_line(running: Server) -> None:
    path = await make(running)
    await put(running, path, "columns/a.py", b"\nFIELD = Field(label='A', colour='red')\n")
    await put(running, path, "columns/b.py", b"import nowhere\n" + FIELD)
    await put(running, path, "columns/c.py", b"1/0\n" + FIELD)
    await put(running, path, "requirements.txt", b"-r /etc/passwd\n")
    found = (await running.http.post(f"{path}/validate")).json()
    assert not found["valid"]
    seen = {(one["file"], one["code"], one["severity"]) for one in found["problems"]}
    assert seen == {
        ("requirements.txt", "requirements_refused", "error"),
        ("columns/a.py", "unknown_parameter", "error"),
        ("columns/b.py", "dependency_missing", "error"),
        ("columns/c.py", "load_failed", "error"),
    }
    assert "/etc" not in str([one for one in found["problems"] if one["file"] == "columns/c.py"])


async def test_an_empty_draft_has_no_fields(running: Server) -> None:
    path = await make(running)
    found = (await running.http.post(f"{path}/validate")).json()
    assert [one["code"] for one in found["problems"]] == ["no_fields"]


async def test_a_module_to_be_installed_is_no_error_before_it_is(running: Server) -> None:
    path = await make(running)
    await put(running, path, "columns/b.py", b"import nowhere\n" + FIELD)
    await put(running, path, "requirements.txt", b"nowhere==1.0\n")
    found = (await running.http.post(f"{path}/validate")).json()
    assert found["valid"]
    (one,) = found["problems"]
    assert (one["code"], one["severity"]) == ("dependency_missing", "warning")
    assert "activated" in one["hint"]


async def test_packages_that_are_on_another_host_only_are_no_error(running: Server) -> None:
    path = await make(running)
    await put(running, path, "columns/b.py", b"import nowhere\n" + FIELD)
    await put(running, path, "requirements.txt", b"nowhere==1.0\n")
    await started(running, path.rpartition("/")[2], await uploaded(running))
    (claim,) = await running.kernel.claim(ClaimRequest("builder", 1))
    report = {"environment": "sha256:" + "0" * 64}
    outcome = Outcome(Status.SUCCEEDED, {"outputs": {"result_json": report}})
    await running.kernel.finish(Finish(claim, outcome))
    found = (await running.http.post(f"{path}/validate")).json()
    assert found["valid"]
    (one,) = found["problems"]
    assert (one["code"], one["severity"]) == ("dependency_missing", "warning")


async def test_a_package_that_ends_the_check_is_reported(running: Server) -> None:
    path = await make(running)
    await put(running, path, "columns/a.py", b"import os\nos._exit(0)\n")
    found = (await running.http.post(f"{path}/validate")).json()
    assert [one["code"] for one in found["problems"]] == ["load_failed"]


@pytest.mark.parametrize("said", [None, [], {"valid": True}, {"valid": 1, "problems": [{}]}])
async def test_what_a_hostile_package_says_is_not_believed(serve: Serve, said: Any) -> None:
    server = await serve(inline_tasks=says(said))
    path = await make(server)
    found = (await server.http.post(f"{path}/validate")).json()
    assert not found["valid"]


async def test_a_check_that_cannot_run_is_reported(serve: Serve) -> None:
    server = await serve(inline_tasks=fails(Category.INTERNAL_ERROR))
    problem(await server.http.post(f"{await make(server)}/validate"), 503, "unavailable")
    slow = await serve(
        inline_tasks=fails(Category.RESOURCE_LIMIT, "It ran out.", file="config/a.py")
    )
    found = (await slow.http.post(f"{await make(slow)}/validate")).json()
    assert [(one["file"], one["code"]) for one in found["problems"]] == [("a.py", "load_failed")]


async def test_safe_mode_loads_nothing(serve: Serve) -> None:
    server = await serve(inline_tasks=says({}), rules=KernelSettings(queue_size=0, safe_mode=True))
    found = problem(await server.http.post(f"{await make(server)}/validate"), 400, "safe_mode")
    assert found["detail"].startswith("ADE_SAFE_MODE is enabled")
