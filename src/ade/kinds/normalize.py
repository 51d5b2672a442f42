"""`normalize`: a run of a configuration on one document."""

import asyncio
import re
import tomllib
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.domain.evaluation import FailOn
from ade.domain.outcome import Outcome
from ade.kinds.kind import JobInputs, JobIO, Kind, Prepared, VersionPackage
from ade.kinds.run_evaluation import evaluated

NAME_CHARS_MAX = 100
ODD = re.compile(r"[^\w.\- ]+")
# What every run would otherwise import again.
ENGINE = ("numpy", "polars", "python_calamine", "ade_engine.preload.spreadsheets")
WORKBOOK = {"output/normalized.xlsx": "normalized.xlsx"}
OUTPUTS = {
    "output/artifact.json": "artifact.json",
    "output/events.ndjson": "engine-events.ndjson",
}
SETTINGS_FILE = "config.toml"


OutputFormat = Literal["xlsx", "csv", "parquet", "jsonl"]
OutputFormats = Annotated[list[OutputFormat], Field(min_length=1, max_length=4)]


class NormalizeInputs(BaseModel):
    """Name what is run on what."""

    model_config = ConfigDict(extra="forbid")

    config_version_id: str
    document_id: str
    build_id: str
    headers: bool = Field(default=True, description="whether header texts are recorded")
    fail_on: FailOn | None = Field(
        default=None, description="which result is a failure; by default what the package says"
    )
    outputs: OutputFormats | None = Field(
        default=None, description="formats of the rows; by default what the package says"
    )


class Normalize(Kind):
    """Run a configuration's rules on one document."""

    name = "normalize"
    inputs = NormalizeInputs
    entry = "ade_engine.entry.normalize"
    env_version = "normalize@1"
    preload = ENGINE
    direct = False

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Lay out the document and the version's files as the run was submitted."""
        workspace_id, inputs = job.workspace_id, job.inputs
        (document, name), package, environment = await asyncio.gather(
            job_io.document(workspace_id, inputs["document_id"]),
            job_io.package(workspace_id, inputs["config_version_id"]),
            job_io.environment(workspace_id, inputs["build_id"]),
        )
        place = f"inputs/01-{safe_filename(name)}"
        has_workbook = "xlsx" in (inputs["outputs"] or _outputs_of(package))
        return Prepared(
            inputs={
                "input": place,
                "input_name": name,
                "config": "config",
                "output": "output",
                "files": "artifacts",  # what is written besides the workbook
                "outputs": inputs["outputs"],
                "job_id": job.job_id,
                "headers": inputs["headers"],
                "configuration": {
                    "configuration_id": package.configuration_id,
                    "sequence": package.sequence,
                    "digest": package.digest,
                },
            },
            files={place: document, **package.below("config")},
            outputs=WORKBOOK | OUTPUTS if has_workbook else OUTPUTS,
            environment=environment,
        )

    def collect(self, job: JobInputs, outcome: Outcome) -> Outcome:
        """Add what the run says of its result, and fail it if `fail_on` says so."""
        return evaluated(outcome, job.inputs["fail_on"])


def _outputs_of(package: VersionPackage) -> list[str]:
    """Return the package's setting `outputs`; by default it is the workbook."""
    settings = package.files.get(SETTINGS_FILE)
    if settings is None:
        return ["xlsx"]
    try:
        output = tomllib.loads(settings.read_text(encoding="utf-8")).get("output", {})
        return [str(name) for name in output.get("outputs", ["xlsx"])]
    except (ValueError, AttributeError, TypeError):
        return ["xlsx"]  # the run fails and says what is wrong with the file


def safe_filename(name: str) -> str:
    """Return a name that is safe in any folder, with the ending that people know it by."""
    plain = ODD.sub("_", PurePosixPath(name.replace("\\", "/")).name).strip(". ") or "input"
    stem, dot, ending = plain.rpartition(".")
    if not dot:
        return plain[:NAME_CHARS_MAX]
    return f"{stem[: NAME_CHARS_MAX - 12]}.{ending[:10]}"
