"""The OpenAPI document is committed; a change of the API is a change of it."""

import json
from pathlib import Path

from tests.api.server import Server

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
REGENERATE = ".venv/bin/python -m ade.process.describe docs/reference"


async def test_the_committed_document_is_what_the_server_says(server: Server) -> None:
    answer = await server.client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    committed = json.loads(COMMITTED.read_text())
    assert answer.json() == committed, f"the API changed; look at it, then run: {REGENERATE}"


async def test_the_committed_document_of_the_worker_contract_is_up_to_date(server: Server) -> None:
    answer = await server.client().get("/api/agent/openapi.json")
    assert answer.status_code == 200
    committed = json.loads((COMMITTED.parent / "worker-contract.json").read_text())
    assert answer.json() == committed, f"the API changed; look at it, then run: {REGENERATE}"


async def test_every_operation_knows_its_problems_and_its_keys(server: Server) -> None:
    document = server.app.openapi()
    assert document["openapi"].startswith("3.1")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], f"{method} {path}"
            assert "500" in operation["responses"], f"{method} {path}"
            assert ("401" in operation["responses"]) is bool(operation["security"])
            for status, response in operation["responses"].items():
                if status >= "400" and path.startswith("/api/v1/workspaces"):
                    assert "application/problem+json" in response["content"]
