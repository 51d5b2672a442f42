"""The private channel from a child process to its parent: one JSON object per line, not stdout."""

import json
from typing import Any, TextIO

# Files that a job writes to this folder of its working directory are kept with its result.
ARTIFACTS_FOLDER = "artifacts"


class ResultNotJson(Exception):
    """The value that a job returned cannot be written as JSON."""


class Channel:
    """Send progress while a job runs, and its result or failure at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def progress(self, done: int, total: int, message: str = "") -> None:
        """Report how much of the work is done."""
        self._send({"progress": {"done": done, "total": total, "message": message}})

    def artifact(
        self, name: str, *, kind: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Describe a file in `artifacts/`; files that are not described are kept as well."""
        self._send({"artifact": {"name": name, "kind": kind, "metadata": metadata or {}}})

    def result(self, value: Any) -> None:
        """Send the result."""
        self._send({"result": value})

    def failure(self, facts: dict[str, Any]) -> None:
        """Send what went wrong."""
        self._send({"failure": facts})

    def _send(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")
        self._stream.flush()
