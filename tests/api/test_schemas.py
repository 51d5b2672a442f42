"""The contract's JSON Schemas: served, committed, and true of what is taken and given."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.api.server import Server

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
REGENERATE = ".venv/bin/python -m ade.process.describe docs/reference"
PAYLOAD = {
    "schema_version": "1.0",
    "job_type": "object_execute",
    "document_revision_id": "r",
    "inputs": {"source": "1 + 1"},
}


async def read(server: Server, name: str) -> Any:
    """Read a schema without a key."""
    answer = await server.client().get(f"/api/v1/schemas/{name}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/schema+json"
    return answer.json()


async def test_the_committed_schemas_are_what_the_server_says(server: Server) -> None:
    listed = (await server.client().get("/api/v1/schemas")).json()["items"]
    committed = {str(path.relative_to(COMMITTED)) for path in COMMITTED.rglob("*.json")}
    assert {one["name"] for one in listed} == committed
    for name in committed:
        committed = json.loads((COMMITTED / name).read_text())
        assert await read(server, name) == committed, f"look at it, then run: {REGENERATE}"
        assert committed["$id"] == f"/api/v1/schemas/{name}"


async def test_a_schema_that_is_not_there(server: Server) -> None:
    for name in ("nothing.json", "payload", "payload/"):
        answer = await server.client().get(f"/api/v1/schemas/{name}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"output_spec": {"formats": ["png"]}}, True),
        ({"output_spec": None, "limits": {"cpu_ms": 1}}, True),
        ({"schema_version": "1.7"}, True),
        ({"schema_version": "2.0"}, False),
        ({"output_spec": {"formats": ["exe"]}}, False),
        ({"output_spec": {"format": "png"}}, False),
        ({"inputs": {"source": 1}}, False),
        ({"inputs": {"sauce": "1"}}, False),
        ({"limits": {"cpu_ms": 0}}, False),
        ({"unknown": 1}, False),
        ({"environment": {"language": "python"}}, True),
    ],
)
async def test_the_server_takes_what_fits_the_schema(
    server: Server, changes: dict[str, Any], fits: bool
) -> None:
    asked = PAYLOAD | changes
    schema = await read(server, "payload/object_execute.json")
    assert jsonschema_rs.is_valid(schema, asked) is fits
    answer = await server.http.post("/api/v1/workspaces/default/jobs", json=asked)
    assert (answer.status_code == 202) is fits, answer.text
    if changes.get("schema_version") == "2.0":
        assert answer.json()["code"] == "unsupported_schema_version"


async def test_inputs_and_output_spec_that_contradict_are_refused(server: Server) -> None:
    objects = [{"type": "text", "content": {"format": "plain", "value": "words"}}]
    asked = {
        "job_type": "document_export",
        "document_revision_id": "r",
        "inputs": {"export_format": "pdf", "document": {"objects": objects}},
        "output_spec": {"formats": ["html"]},
    }
    refused = await server.http.post("/api/v1/workspaces/default/jobs", json=asked)
    assert (refused.status_code, refused.json()["code"]) == (422, "validation_error")
    assert "export_format is pdf, but" in refused.json()["detail"]
    taken = await server.http.post(
        "/api/v1/workspaces/default/jobs", json=asked | {"output_spec": {"formats": ["pdf"]}}
    )
    assert taken.status_code == 202, taken.text


async def test_a_language_that_the_kind_does_not_speak_is_refused(server: Server) -> None:
    asked = PAYLOAD | {"environment": {"language": "cobol"}}
    answer = await server.http.post("/api/v1/workspaces/default/jobs", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_error")
    assert answer.json()["errors"][0]["field"] == "environment.language"


async def test_what_is_wrong_in_too_many_places_is_not_listed(server: Server) -> None:
    inputs = {"source": "1", **{f"unknown-{number}": 1 for number in range(2000)}}
    asked = PAYLOAD | {"inputs": inputs}
    answer = await server.http.post("/api/v1/workspaces/default/jobs", json=asked)
    assert answer.status_code == 422
    assert answer.json()["detail"] == "inputs: it has more than 1000 errors."
    assert len(answer.json()["errors"]) == 1


async def test_too_large_is_said_before_all_else_that_is_wrong(serve: Any) -> None:
    server = await serve(payload_max_kb=1)
    item = PAYLOAD | {"inputs": {"unknown": "x" * 2000}}
    answer = await server.http.post("/api/v1/workspaces/default/jobs/batch", json={"jobs": [item]})
    assert answer.json()["items"][0]["problem"]["code"] == "payload_too_large"
