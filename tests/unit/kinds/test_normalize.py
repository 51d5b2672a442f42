"""A run collects the workbook if its package writes one, and other files as artifacts."""

from pathlib import Path

import pytest

from ade.kinds.kind import JobInputs, Prepared, VersionPackage
from ade.kinds.normalize import Normalize, NormalizeInputs

WORKBOOK = "output/normalized.xlsx"


class OnePackage:
    """Serve one document and one version, from a folder."""

    def __init__(self, folder: Path, config: str | None) -> None:
        self._document = folder / "in.csv"
        self._files = {}
        if config is not None:
            (folder / "config.toml").write_text(config)
            self._files["config.toml"] = folder / "config.toml"

    async def document(self, workspace_id: str, document_id: str) -> tuple[Path, str]:
        return self._document, "in.csv"

    async def package(self, workspace_id: str, version_id: str) -> VersionPackage:
        return VersionPackage("cfg", 1, "sha256:0", self._files)

    async def environment(self, workspace_id: str, build_id: str) -> str | None:
        return None


async def prepare(folder: Path, config: str | None, **asked: object) -> Prepared:
    named = {"config_version_id": "v", "document_id": "d", "build_id": "b", **asked}
    job = JobInputs("w", "job", 1, NormalizeInputs.model_validate(named).model_dump())
    return await Normalize().prepare(job, OnePackage(folder, config))  # type: ignore[arg-type]


async def test_outputs_of_a_run_go_before_those_of_the_package(tmp_path: Path) -> None:
    prepared = await prepare(tmp_path, "[output]\noutputs = ['xlsx']\n", outputs=["csv"])
    assert prepared.inputs["outputs"] == ["csv"]
    assert WORKBOOK not in prepared.outputs


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (None, True),
        ("name = 'x'\n", True),
        ("[output]\noutputs = ['xlsx', 'csv']\n", True),
        ("[output]\noutputs = ['csv']\n", False),
        ("output = 3\n", True),  # the run itself says what is wrong
        ("not toml", True),
    ],
)
async def test_the_workbook_is_an_output_if_the_package_writes_it(
    tmp_path: Path, config: str | None, wanted: bool
) -> None:
    prepared = await prepare(tmp_path, config)
    assert (WORKBOOK in prepared.outputs) == wanted
    assert "output/artifact.json" in prepared.outputs
    assert prepared.inputs["files"] == "artifacts"
