"""The inputs of `document_export`, and the two ways to select formats."""

from typing import Any

import pytest
from pydantic import ValidationError

from ade.app.job_requests import Caller, JobRequests
from ade.domain.errors import InvalidRequest
from ade.kinds import JobInputs, Kinds
from ade.kinds.document_export import DocumentExport, ExportInputs, ExportOutputs
from ade.settings import Settings
from ade.worker.job_io import NoJobIO

DOCUMENT = {"objects": [{"type": "text", "content": {"format": "markdown", "value": "# a"}}]}


DIGEST = "sha256:" + "a" * 64


async def prepared(spec: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    """Prepare an attempt; return the inputs of the entry module."""
    given = ExportInputs.model_validate({"document": DOCUMENT, **inputs}).model_dump(mode="json")
    wanted = ExportOutputs.model_validate(spec).model_dump(mode="json")
    return (await DocumentExport().prepare(JobInputs("w", "j", 1, given, wanted), NoJobIO())).inputs


@pytest.mark.parametrize(
    ("named", "listed", "formats"),
    [
        (None, [], ["pdf"]),
        ("html", [], ["html"]),
        (None, ["html"], ["html"]),
        ("pdf", ["pdf"], ["pdf"]),
        ("pdf", ["html", "pdf"], ["pdf", "html"]),
        ("bundle", [], ["bundle"]),
        (None, ["bundle", "pdf"], ["pdf", "bundle"]),
        (None, ["html", "pdf"], ["pdf", "html"]),
    ],
)
async def test_either_field_selects_the_format(
    named: str | None, listed: list[str], formats: list[str]
) -> None:
    inputs = await prepared({"formats": listed}, export_format=named)
    assert inputs["formats"] == formats
    assert (inputs["view_mode"], inputs["include_speaker_notes"]) == ("document", False)


async def test_contradicting_formats_are_rejected() -> None:
    with pytest.raises(InvalidRequest, match="is pdf, but the formats of output_spec are html"):
        await prepared({"formats": ["html"]}, export_format="pdf")


async def test_artifacts_are_rejected_without_a_bundle() -> None:
    wanted = {"artifacts": [{"digest": DIGEST, "name": "a.csv"}]}
    inputs = ExportInputs.model_validate({"document": DOCUMENT, **wanted}).model_dump(mode="json")
    DocumentExport().check(inputs, {"formats": ["bundle"]})
    with pytest.raises(InvalidRequest, match="artifacts are for a bundle"):
        DocumentExport().check(inputs, {"formats": ["pdf"]})


@pytest.mark.parametrize(
    "names",
    [["../a"], ["a/b"], [".hidden"], ["a\\b"], ["a\0"], ["c:"], [""], ["x" * 201], ["A", "a"]],
)
def test_artifacts_need_distinct_names_of_files(names: list[str]) -> None:
    artifacts = [{"digest": DIGEST, "name": name} for name in names]
    with pytest.raises(ValidationError):
        ExportInputs.model_validate({"document": DOCUMENT, "artifacts": artifacts})


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"document": DOCUMENT, "export_format": "docx"},
        {"document": DOCUMENT, "view_mode": "canvas"},
        {"document": DOCUMENT, "template": "x"},
    ],
)
def test_unknown_inputs_are_rejected(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExportInputs.model_validate(inputs)


@pytest.mark.parametrize("formats", [["docx"], ["pdf", "pdf"], ["pdf", "html", "pdf"]])
def test_formats_must_be_known_and_unique(formats: list[str]) -> None:
    with pytest.raises(ValidationError):
        ExportOutputs.model_validate({"formats": formats})


def test_the_key_depends_on_everything_that_the_result_depends_on() -> None:
    def key(spec: dict[str, Any] | None = None, **inputs: Any) -> str | None:
        asked: Any = {
            "job_type": "document_export",
            "document_revision_id": "r",
            "inputs": {"document": DOCUMENT, **inputs},
            "output_spec": spec or {},
        }
        requests = JobRequests(Settings(), Kinds([DocumentExport()]))
        return requests.submission(asked, Caller("workspace", "user")).execution_key

    keys = [
        key(),
        key(view_mode="slide"),
        key(include_speaker_notes=True),
        key({"formats": ["html"]}),
        key(document=DOCUMENT | {"title": "T"}),
        key({"formats": ["bundle"]}),
        key({"formats": ["bundle"]}, artifacts=[{"digest": DIGEST, "name": "a.csv"}]),
    ]
    assert len(set(keys)) == len(keys)
    assert key(view_mode="document") == keys[0]


def test_the_environment_version_includes_typst() -> None:
    assert DocumentExport.env_version.startswith("export@3+typst0.")
    assert not DocumentExport.trusted
