"""Formulas and diagrams over HTTP, drawn in the sandbox of this machine and that of Docker."""

import os
import shutil
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.system.server import JOBS, Server
from tests.system.ways import WAYS, serving

ARTIFACTS = "/api/v1/artifacts"
HAS_DOT = shutil.which("dot") is not None


@pytest.fixture(scope="module", params=WAYS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Serve for all tests of this module, in each way."""
    with serving(request.param, tmp_path_factory.mktemp("render")) as server:
        yield server


def render(server: Server, kind: str, source: str, *formats: str, **inputs: Any) -> dict[str, Any]:
    """Draw an object that is no one else's; return the result."""
    content = {"format": {"equation": "latex", "diagram": "dot"}[kind], "value": source}
    body: dict[str, Any] = {
        "job_type": "object_render",
        "document_revision_id": os.urandom(8).hex(),
        "inputs": {"object": {"type": kind, "content": content}, **inputs},
        "output_spec": {"formats": formats or ["svg"]},
    }
    answer = server.http.post(JOBS, json=body, headers={"Prefer": "wait=60"}, timeout=90)
    assert answer.status_code == 200, answer.text
    return server.result(answer.json()) | {"job": answer.json()}


def test_a_formula_is_drawn_in_both_formats(server: Server) -> None:
    found = render(server, "equation", r"\int_0^1 x^2\,dx", "svg", "png", scale=3)
    assert found["status"] == "SUCCEEDED", found["error"]
    measures = found["outputs"]["result_json"]
    kept = {one["name"]: one for one in found["artifacts"]}
    assert kept.keys() == {"equation.svg", "equation.png"}
    assert {one["kind"] for one in kept.values()} == {"equation"}
    assert kept["equation.svg"]["content_type"] == "image/svg+xml"
    assert kept["equation.svg"]["metadata"]["baseline"] == measures["baseline"]
    assert kept["equation.png"]["metadata"]["width"] == pytest.approx(3 * measures["width"], abs=1)


def test_the_same_formula_has_the_same_digests(server: Server) -> None:
    twice = [render(server, "equation", r"\sqrt{x}", "svg", "png") for _ in range(2)]
    digests = [sorted(one["digest"] for one in found["artifacts"]) for found in twice]
    assert digests[0] == digests[1]
    assert twice[0]["job"]["job_id"] != twice[1]["job"]["job_id"]


def test_a_formula_is_drawn_by_a_warm_interpreter(server: Server) -> None:
    """Importing the renderer alone takes 200 ms of CPU."""
    used = [render(server, "equation", f"x_{at}")["resource_usage"]["cpu_ms"] for at in range(4)]
    assert min(used) < 100


def test_a_formula_error_is_reported_with_its_position(server: Server) -> None:
    error = render(server, "equation", "x +\n\\foo")["error"]
    assert error == {
        "category": "USER_CODE_ERROR",
        "code": "BAD_FORMULA",
        "message": "The command \\foo is not known (line 2, column 1).",
        "details": {"line": 2, "column": 1},
    }


@pytest.mark.skipif(not HAS_DOT, reason="Graphviz is not installed")
def test_a_diagram_is_drawn_where_processes_can_be_started(server: Server) -> None:
    found = render(server, "diagram", "digraph { a -> b }", "svg", "png")
    if "pid" not in found["job"]["isolation"]:
        assert found["error"]["category"] == "DEPENDENCY_ERROR"
        assert found["error"]["code"] == "GRAPHVIZ_NOT_FOUND"
        assert "does not let jobs start processes" in found["error"]["message"]
        return
    assert found["status"] == "SUCCEEDED", found["error"]
    assert {one["name"] for one in found["artifacts"]} == {"diagram.svg", "diagram.png"}
    assert found["outputs"]["result_json"]["drawn_by"].startswith("graphviz ")


def test_a_diagram_that_names_files_is_refused(server: Server) -> None:
    error = render(server, "diagram", 'digraph {\n a [image="/etc/passwd"] }')["error"]
    assert (error["code"], error["details"]) == ("BAD_DIAGRAM", {"line": 2})


def test_what_cannot_be_drawn_is_not_accepted(server: Server) -> None:
    body = {"job_type": "object_render", "document_revision_id": "r", "inputs": {"object": {}}}
    assert server.http.post(JOBS, json=body).status_code == 422


def test_the_svg_can_be_fetched_and_read(server: Server) -> None:
    (artifact,) = render(server, "equation", "a < b", color="#123456")["artifacts"]
    link = server.http.get(f"{ARTIFACTS}/{artifact['artifact_id']}/url").json()["url"]
    root = ElementTree.fromstring(server.http.get(link).text)
    assert root.get("aria-label") == "a < b"
    assert {one.get("fill") for one in root.iter() if "fill" in one.attrib} == {"#123456"}
