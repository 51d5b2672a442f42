"""The job type `word_count`: its inputs, and what a job of it needs before it starts."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ade.kinds import Digest, JobInputs, JobIO, Kind, OutputSpec, Prepared

PLACE = "inputs/text"


class WordCountInputs(BaseModel):
    """Say which text, and which words count."""

    model_config = ConfigDict(extra="forbid")

    digest: Digest = Field(description="of a stored file")
    at_least: int = Field(default=1, ge=1, le=1_000_000, description="how often a word must occur")


class WordCountOutputs(OutputSpec):
    """Say in which formats the table is wanted."""

    formats: list[Literal["csv", "json"]] = Field(default=["csv"], max_length=2)  # type: ignore[assignment]


class WordCount(Kind):
    """Count the words of a stored text."""

    name = "word_count"
    inputs = WordCountInputs
    output_spec = WordCountOutputs
    entry = "ade_word_count.run"
    env_version = "word-count@1"
    preload = ("ade_word_count.run",)
    retries = 1

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Fetch the text; the job fails if the workspace has none with this digest."""
        text = await job_io.blob(job.workspace_id, job.inputs["digest"])
        return Prepared(
            inputs={
                "text": PLACE,
                "at_least": job.inputs["at_least"],
                "formats": job.output_spec["formats"],
            },
            files={PLACE: text},
        )
