"""The private line from a child to whoever runs it: one JSON object per line, never stdout."""

import json
from typing import Any, TextIO


class ResultNotJson(Exception):
    """The value that a job gave has no place in JSON."""


class Channel:
    """Send progress on the way and one last word at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def progress(self, done: int, total: int, message: str = "") -> None:
        """Say how far the work has come."""
        self._send({"progress": {"done": done, "total": total, "message": message}})

    def artifact(
        self, name: str, *, kind: str | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Say what a file below `artifacts/` is; without a word it is kept all the same."""
        self._send({"artifact": {"name": name, "kind": kind, "metadata": metadata or {}}})

    def result(self, value: Any) -> None:
        """Give the result."""
        self._send({"result": value})

    def failure(self, told: dict[str, Any]) -> None:
        """Say what went wrong."""
        self._send({"failure": told})

    def _send(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line, allow_nan=False) + "\n")
        self._stream.flush()
