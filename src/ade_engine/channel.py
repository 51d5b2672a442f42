"""The private channel from a child process to its parent: one JSON object per line, not stdout."""

import json
from dataclasses import dataclass
from typing import Any, TextIO

# Files that a job writes to this folder of its working directory are kept with its result.
ARTIFACTS_FOLDER = "artifacts"
WARNING_CHARS_MAX = 500


class ResultNotJson(Exception):
    """The value that a job returned cannot be written as JSON."""


@dataclass(frozen=True)
class ArtifactLimits:
    """Hold how many files and bytes of a job are kept."""

    files_max: int
    bytes_max: int


class Channel:
    """Send progress while a job runs, and its result or failure at the end.

    `limits` are those of the job that the process was started for; without them the caller lives
    on, so its interpreter must stay as it is.
    """

    def __init__(self, stream: TextIO, limits: ArtifactLimits | None = None) -> None:
        self._stream = stream
        self.limits = limits

    def progress(self, done: int, total: int, message: str = "") -> None:
        """Report how much of the work is done."""
        self._send({"progress": {"done": done, "total": total, "message": message}})

    def step(self, text: str) -> None:
        """Say what was done, for those who follow the log of the job."""
        self._send({"step": text})

    def artifact(
        self, name: str, *, kind: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Describe a file in `artifacts/`; files that are not described are kept as well."""
        self._send({"artifact": {"name": name, "kind": kind, "metadata": metadata or {}}})

    def warning(self, message: str) -> None:
        """Tell the reader of the result about something that did not stop the job."""
        self._send({"warning": message[:WARNING_CHARS_MAX]})

    def result(self, value: Any) -> None:
        """Send the result."""
        self._send({"result": value})

    def failure(self, facts: dict[str, Any]) -> None:
        """Send what went wrong."""
        self._send({"failure": facts})

    def _send(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")
        self._stream.flush()
