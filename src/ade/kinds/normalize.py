"""`normalize`: a run of a configuration on one document."""

import re
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict, Field

from ade.kinds.kind import JobInputs, JobIO, Kind, Prepared

NAME_CHARS_MAX = 100
ODD = re.compile(r"[^\w.\- ]+")
# What every run would otherwise import again.
ENGINE = ("numpy", "polars", "python_calamine", "ade_engine.preload.spreadsheets")
OUTPUTS = {
    "output/normalized.xlsx": "normalized.xlsx",
    "output/artifact.json": "artifact.json",
    "output/events.ndjson": "engine-events.ndjson",
}


class NormalizeInputs(BaseModel):
    """Name what is run on what."""

    model_config = ConfigDict(extra="forbid")

    config_version_id: str
    document_id: str
    build_id: str
    headers: bool = Field(default=True, description="whether header texts are recorded")


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
        document, name = await job_io.document(workspace_id, inputs["document_id"])
        package = await job_io.package(workspace_id, inputs["config_version_id"])
        place = f"inputs/01-{safe_filename(name)}"
        return Prepared(
            inputs={
                "input": place,
                "input_name": name,
                "config": "config",
                "output": "output",
                "job_id": job.job_id,
                "headers": inputs["headers"],
                "configuration": {
                    "configuration_id": package.configuration_id,
                    "sequence": package.sequence,
                    "digest": package.digest,
                },
            },
            files={place: document, **package.below("config")},
            outputs=OUTPUTS,
            environment=await job_io.environment(workspace_id, inputs["build_id"]),
        )


def safe_filename(name: str) -> str:
    """Return a name that is safe in any folder, with the ending that people know it by."""
    plain = ODD.sub("_", PurePosixPath(name.replace("\\", "/")).name).strip(". ") or "input"
    stem, dot, ending = plain.rpartition(".")
    if not dot:
        return plain[:NAME_CHARS_MAX]
    return f"{stem[: NAME_CHARS_MAX - 12]}.{ending[:10]}"
