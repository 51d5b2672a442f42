"""Exports and thumbnails in a real sandbox: their fonts, threads, images and artifacts."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from tests.system.cells import run
from tests.system.server import JOBS, Server, starting

WAIT = {"Prefer": "wait=60"}
FIGURE = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.savefig("artifacts/squares.png")
plt.close("all")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module."""
    with starting(tmp_path_factory.mktemp("exports"), ADE_LOG_LEVEL="warning") as start:
        yield start.server()


def asked(server: Server, job_type: str, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run a job to its end; return its result."""
    body = {"job_type": job_type, "document_revision_id": os.urandom(8).hex(), "inputs": inputs}
    answer = server.http.post(JOBS, json=body | more, headers=WAIT, timeout=90)
    assert answer.status_code == 200, answer.text
    return server.result(answer.json())


def content(server: Server, artifact: dict[str, Any]) -> bytes:
    """Read an artifact by its link."""
    answer = server.http.get(f"/api/v1/artifacts/{artifact['artifact_id']}/url")
    return server.http.get(answer.json()["url"]).content


def text(value: str) -> dict[str, Any]:
    """Return an object of Markdown."""
    return {"type": "text", "content": {"format": "markdown", "value": value}}


def test_a_figure_of_a_cell_is_exported_with_formulas_and_odd_characters(server: Server) -> None:
    figure = run(server, FIGURE)["artifacts"][0]["digest"]
    document = {
        "title": "A report",
        "objects": [
            text("# Result\n\n$E = mc^2$, 漢字, and a rare one: \N{EGYPTIAN HIEROGLYPH A001}"),
            {"type": "image", "content": {"digest": figure, "alt": "squares"}},
        ],
    }
    result = asked(
        server, "document_export", {"document": document}, output_spec={"formats": ["html", "pdf"]}
    )
    assert result["status"] == "SUCCEEDED", result["error"]
    report = result["outputs"]["result_json"]
    assert (report["formats"], report["pages"]) == (["pdf", "html"], 1)
    assert {one["code"] for one in report["warnings"]} <= {"missing_glyphs", "machine_fonts"}
    assert not any("漢" in one["message"] for one in report["warnings"])  # from the extra `fonts`
    made = {artifact["format"]: artifact for artifact in result["artifacts"]}
    assert made["pdf"]["content_type"] == "application/pdf"
    assert made["pdf"]["metadata"] == {"pages": 1}
    assert content(server, made["pdf"]).startswith(b"%PDF-")
    assert b'alt="squares"' in content(server, made["html"])


def test_a_bundle_has_an_artifact_of_another_job(server: Server) -> None:
    figure = run(server, FIGURE)["artifacts"][0]["digest"]
    inputs = {
        "document": {"objects": [text("# Result")]},
        "artifacts": [{"digest": figure, "name": "squares.png"}],
    }
    result = asked(server, "document_export", inputs, output_spec={"formats": ["bundle"]})
    assert result["status"] == "SUCCEEDED", result["error"]
    [made] = result["artifacts"]
    assert (made["name"], made["content_type"]) == ("document.zip", "application/zip")
    bundle = zipfile.ZipFile(io.BytesIO(content(server, made)))
    manifest = {one["path"]: one for one in json.loads(bundle.read("manifest.json"))["files"]}
    assert len(manifest) == made["metadata"]["files"] == len(bundle.namelist()) - 1
    assert manifest["artifacts/squares.png"]["digest"] == figure


def test_a_thumbnail_is_an_artifact_of_its_size(server: Server) -> None:
    inputs = {"object": text("# Hello"), "sizes": [{"width": 40, "height": 30}]}
    result = asked(server, "thumbnail_generate", inputs)
    [artifact] = result["artifacts"]
    assert (artifact["kind"], artifact["metadata"]) == ("thumbnail", {"width": 40, "height": 30})
    png = content(server, artifact)
    assert (png[:8], png[16:24]) == (b"\x89PNG\r\n\x1a\n", b"\x00\x00\x00\x28\x00\x00\x00\x1e")


@pytest.mark.parametrize(
    ("inputs", "spec", "category", "code"),
    [
        (
            {"objects": [{"type": "image", "content": {"digest": "sha256:" + "0" * 64}}]},
            [],
            "DEPENDENCY_ERROR",
            "DEPENDENCY_NOT_FOUND",
        ),
        (
            {
                "objects": [
                    {"type": "image", "content": {"data": "AA==", "media_type": "image/png"}}
                ]
            },
            [],
            "VALIDATION_ERROR",
            "BAD_IMAGE",
        ),
    ],
    ids=["missing", "no image"],
)
def test_what_cannot_be_exported_says_why(
    server: Server, inputs: dict[str, Any], spec: list[str], category: str, code: str
) -> None:
    result = asked(
        server,
        "document_export",
        {"document": inputs, "export_format": "pdf"},
        output_spec={"formats": spec},
    )
    assert result["status"] == "FAILED"
    assert (result["error"]["category"], result["error"]["code"]) == (category, code)
    assert result["artifacts"] == []
