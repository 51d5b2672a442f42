"""Describe the files that jobs leave: their formats, their media types, what they hold."""

import re
from typing import Any

from ade.domain.outcome import Artifact, OutputFile

OCTETS = "application/octet-stream"
CONTENT_TYPES = {
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "ndjson": "application/x-ndjson",
    "npy": OCTETS,
    "parquet": "application/vnd.apache.parquet",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "webp": "image/webp",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
}
TABLES = {"csv", "tsv", "parquet", "xlsx"}
FORMAT = re.compile(r"[a-z0-9]{1,10}")


def artifact_of(file: OutputFile, artifact_id: str, uri: str) -> Artifact:
    """Describe a kept file, by its name and by what its job declared about it."""
    format_ = _format(file.name)
    return Artifact(
        id=artifact_id,
        name=file.name,
        kind=file.kind or _kind(format_),
        format=format_,
        digest=file.digest,
        size_bytes=file.size_bytes,
        uri=uri,
        content_type=CONTENT_TYPES.get(format_, OCTETS),
        metadata=_plain(file.metadata),
    )


def _format(name: str) -> str:
    ending = name.rpartition("/")[2].rpartition(".")[2].lower() if "." in name else ""
    return ending if FORMAT.fullmatch(ending) else "bin"


def _kind(format_: str) -> str:
    if CONTENT_TYPES.get(format_, OCTETS).startswith("image/"):
        return "image"
    return "table" if format_ in TABLES else "file"


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Keep texts and numbers only: the job chose what is here."""
    return {
        name: value
        for name, value in metadata.items()
        if value is None or isinstance(value, str | int | float | bool)
    }
