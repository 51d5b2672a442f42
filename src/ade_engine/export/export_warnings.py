"""Warnings of an export: what differs from what the author may expect, without failing it."""

from typing import Any

WARNINGS_MAX = 50


class ExportWarnings:
    """Collect warnings, each once, up to a limit; further ones are only counted."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], None] = {}
        self._more = 0

    def add(self, code: str, message: str, object_id: str = "") -> None:
        """Add a warning."""
        key = (code, message, object_id)
        if key in self._seen:
            return
        if len(self._seen) == WARNINGS_MAX:
            self._more += 1
            return
        self._seen[key] = None

    def as_json(self) -> list[dict[str, Any]]:
        """Return the warnings in the order in which they were added."""
        warnings: list[dict[str, Any]] = [
            {"code": code, "message": message} | ({"object_id": name} if name else {})
            for code, message, name in self._seen
        ]
        if self._more:
            warnings.append({"code": "more_warnings", "message": f"There are {self._more} more."})
        return warnings
