"""Say what came out otherwise than its author may expect; the export succeeds all the same."""

from typing import Any

WARNINGS_MAX = 50


class Warnings:
    """Gather warnings, each once, up to a limit; beyond it they are counted."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str, str], None] = {}
        self._more = 0

    def add(self, code: str, message: str, object_id: str = "") -> None:
        """Take one down."""
        key = (code, message, object_id)
        if key in self._told:
            return
        if len(self._told) == WARNINGS_MAX:
            self._more += 1
            return
        self._told[key] = None

    def told(self) -> list[dict[str, Any]]:
        """Return them in the order in which they came."""
        told: list[dict[str, Any]] = [
            {"code": code, "message": message} | ({"object_id": name} if name else {})
            for code, message, name in self._told
        ]
        if self._more:
            told.append({"code": "more_warnings", "message": f"There are {self._more} more."})
        return told
