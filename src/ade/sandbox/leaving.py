"""Put what a job left beside what it said about it."""

from collections.abc import Mapping
from typing import Any

from ade.domain.outcome import Category, JobError, LeftFile
from ade.sandbox.collect import Harvest
from ade.sandbox.judge import limit_error
from ade.sandbox.words import Words

KIND_CHARS_MAX = 40
LOGS_MAX = 20


def left_files(harvest: Harvest, words: Words) -> tuple[LeftFile, ...]:
    """Return the files that were taken, each as the job described it, if it did so decently."""
    return tuple(
        LeftFile(
            file.name,
            file.path,
            file.size_bytes,
            file.digest,
            _kind(words.declared.get(file.name, {}).get("kind")),
            _metadata(words.declared.get(file.name, {}).get("metadata")),
        )
        for file in harvest.taken
    )


def missing_error(wanted: Mapping[str, str], kept: Harvest) -> JobError | None:
    """Say which of the files that a job was to leave it did not."""
    names = {file.name for file in kept.taken}
    missing = [name for name in wanted.values() if name not in names]
    if not missing:
        return None
    text = f"The job ended without what it was to leave: {', '.join(missing)}."
    return JobError(Category.USER_CODE_ERROR, "BAD_RESULT", text)


def artifact_error(harvest: Harvest) -> JobError | None:
    """Say that a job left more than is kept: what is not whole must not count as a success."""
    if harvest.over is None:
        return None
    text = f"Not all that the job left in artifacts/ could be kept: {harvest.over}."
    return limit_error("ARTIFACT_LIMIT", text, kept=len(harvest.taken))


def logs_of(harvest: Harvest) -> list[dict[str, Any]]:
    """Say which files were not taken, and why."""
    return [
        {"level": "warning", "message": f"{name} was not kept: {why}."}
        for name, why in harvest.left[:LOGS_MAX]
    ]


def _kind(said: Any) -> str | None:
    decent = isinstance(said, str) and 0 < len(said) <= KIND_CHARS_MAX and said.isidentifier()
    return said if decent else None


def _metadata(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}
