"""Attack every operation of the committed OpenAPI document with generated requests.

Whatever is sent, the answer has a status, a content type and a body that the document knows, and is
never a server error. Real identifiers are put into the paths, or all of it would end at a 404.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from tests import databases
from tests.api.server import KEY, Server, failed, succeeded

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
EXAMPLES_MAX = 25
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
schemathesis.serializer.alias("application/zip", "application/octet-stream")
schema = schemathesis.openapi.from_dict(json.loads(COMMITTED.read_text()))


@pytest.fixture(scope="module")
def target(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Open a server for the whole attack."""
    with databases.fresh_sqlite(sqlite_template) as url:
        server = Server.open(url, tmp_path_factory.mktemp("target"))
        yield server
        server.close()


@pytest.fixture(scope="module")
def job_ids(target: Server) -> list[str]:
    """Have jobs in every state that is reached without a worker of one's own."""

    async def prepare() -> list[str]:
        ended = [await target.run(succeeded({"x": 1}, stdout="a\nb\n"), value="good")]
        ended += [await target.run(failed(), value="bad", target_id="lamp")]
        waiting = [await target.submit(value=n, target_id="lamp") for n in range(2)]
        waiting += [await target.submit(value="later", not_before="2999-01-01T00:00:00Z")]
        return [job["job_id"] for job in ended + waiting]

    return asyncio.run(prepare())


@pytest.fixture(scope="module")
def library_ids(target: Server) -> dict[str, str]:
    """Have a document, and a configuration with a version."""

    async def prepare() -> dict[str, str]:
        base = "/api/v1/workspaces/default"
        sent = await target.http.post(f"{base}/documents", files={"file": ("a.csv", b"a\n1\n")})
        asked = {"name": "c", "template": "payroll"}
        made = await target.http.post(f"{base}/configurations", json=asked)
        await target.http.post(made.json()["links"]["versions"])
        return {
            "document_id": sent.json()["document_id"],
            "configuration_id": made.json()["configuration_id"],
        }

    return asyncio.run(prepare())


@schema.parametrize()
@settings(
    max_examples=EXAMPLES_MAX,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_answers_are_what_the_document_says(
    case: Any, target: Server, job_ids: list[str], library_ids: dict[str, str]
) -> None:
    known = {"ws": "default", "target_id": "lamp"}
    # Nothing is opened or loaded without a worker, and what is deleted is there no more.
    if case.method != "DELETE" and not case.path.endswith(("/preview", "/validate")):
        known |= library_ids
    for name, value in known.items():
        if name in case.path_parameters and len(str(case.path_parameters[name])) % 4:
            case.path_parameters[name] = value
    if "job_id" in case.path_parameters:
        case.path_parameters["job_id"] = job_ids[len(str(case.body)) % len(job_ids)]
    if isinstance(case.body, dict):
        for job in [case.body, *_jobs(case.body)]:
            _make_runnable(job)
    headers = {"Authorization": f"Bearer {KEY}"}
    case.call_and_validate(headers=headers, checks=CHECKS, app=target.app)


def _jobs(body: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = body.get("jobs")
    return [job for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []


def _make_runnable(job: dict[str, Any]) -> None:
    """Let a job of the right shape be one that this server can run."""
    if isinstance(job.get("job_type"), str) and isinstance(job.get("inputs"), dict):
        job |= {"job_type": "echo", "inputs": {"value": job["inputs"]}, "schema_version": "1.0"}
        job.pop("limits", None)
