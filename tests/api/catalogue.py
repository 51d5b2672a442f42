"""Create the configurations, documents and builds that runs need; the test plays the builder."""

import json
from typing import Any

from tests.api.server import Server
from tests.databases import WORKSPACE
from tests.processes import aeventually

from ade.domain.outcome import Category, JobError
from ade.stages.builds import BuildEnded
from ade.stages.claim import ClaimRequest
from ade.store.rows import Build, BuildHeld, Claim

BASE = "/api/v1/workspaces/default"
RUNS = f"{BASE}/runs"
CSV = b"Name,Amount\nAda,1\nLin,2\n"
PACKAGE = {
    "columns/name.py": "from ade_engine import Field\n\nFIELD = Field(label='Name')\n",
    "columns/amount.py": "from ade_engine import Field\n\nFIELD = Field(label='Amount')\n",
}
LEASE_US = 60_000_000


async def configured(server: Server, package: dict[str, str] = PACKAGE) -> str:
    """Make a configuration; return its id."""
    answer = await server.http.post(f"{BASE}/configurations", json={"name": "roster"})
    assert answer.status_code == 201, answer.text
    configuration_id = str(answer.json()["configuration_id"])
    for path, text in package.items():
        await edited(server, configuration_id, path, text)
    return configuration_id


async def edited(server: Server, configuration_id: str, path: str, text: str) -> None:
    """Write one file of a draft."""
    where = f"{BASE}/configurations/{configuration_id}/files/{path}"
    answer = await server.http.put(where, content=text.encode())
    assert answer.status_code in (200, 201, 204), answer.text


async def uploaded(server: Server, content: bytes = CSV, name: str = "t.csv") -> str:
    """Upload a document; return its id."""
    answer = await server.http.post(f"{BASE}/documents", files={"file": (name, content)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["document_id"])


async def started(
    server: Server, configuration_id: str, document_id: str, **asked: Any
) -> dict[str, Any]:
    """Start a run that must be accepted."""
    body = {"input_document_id": document_id, **asked}
    answer = await server.http.post(f"{BASE}/configurations/{configuration_id}/runs", json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def shown(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    """Read a run."""
    answer = await server.http.get(run["links"]["self"])
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def builds(server: Server) -> list[Build]:
    """List all builds."""
    return await server.catalogue.list_builds(WORKSPACE, before=None, limit=100)


async def built(server: Server, failure: str | None = None) -> Build:
    """Make the next build, well or badly, and tell its runs."""
    build = await server.catalogue.claim_build("builder", LEASE_US)
    assert build is not None
    held = BuildHeld(build.workspace_id, build.id, build.fence)
    error = failure and JobError(Category.DEPENDENCY_ERROR, "PACKAGES_NOT_INSTALLED", failure)
    text = json.dumps(error.as_dict()) if error else None
    status = "failed" if failure else "ready"
    assert await server.catalogue.finish_build(held, status, error=text, environment=None)
    await server.kernel.settle_build(BuildEnded(build.workspace_id, build.id, failure))
    return build


async def claimed(server: Server) -> Claim:
    """Take the next job as soon as there is one."""
    (claim,) = await aeventually(lambda: server.kernel.claim(ClaimRequest("worker-1", 1)))
    return claim
