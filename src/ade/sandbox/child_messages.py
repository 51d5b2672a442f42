"""Messages that a child sends on its line: progress, descriptions of its files, result or error.

Each is one line of JSON; other lines may be a stack trace, if the child was asked for one. A child
may send anything, so every message is bounded and checked, and only a few are kept.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from ade.sandbox.stack_location import StackTrace

OnProgress = Callable[[dict[str, Any]], None]
MESSAGES_MAX = 10
PROGRESS_BYTES_MAX = 4096
MESSAGE_CHARS_MAX = 500
DECLARED_MAX = 1000
DECLARED_BYTES_MAX = 4096


class ChildMessages:
    """Keep the messages of one child, and pass on its progress."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._has_begun = False
        self.kept: list[dict[str, Any]] = []
        self.declared: dict[str, dict[str, Any]] = {}
        self.progress: dict[str, Any] | None = None
        self.stack = StackTrace()

    def receive(self, line: bytes) -> None:
        """Take one line."""
        try:
            message = _DECODER.decode(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            self.stack.receive(line)
            return
        if not isinstance(message, dict):
            return
        self._has_begun = self._has_begun or "begun" in message
        if self._has_begun:  # the layers were applied; from now on the job's code may send anything
            message.pop("setup_error", None)
        if (progress := message.get("progress")) is not None:
            if isinstance(progress, dict) and len(line) <= PROGRESS_BYTES_MAX:
                self.progress = _progress(progress)
                self._on_progress(self.progress)
        elif (artifact := message.get("artifact")) is not None:
            if isinstance(artifact, dict) and len(line) <= DECLARED_BYTES_MAX:
                self._declare(artifact)
        elif len(self.kept) < MESSAGES_MAX:
            self.kept.append(message)

    def _declare(self, artifact: dict[str, Any]) -> None:
        name = artifact.get("name")
        if isinstance(name, str) and (name in self.declared or len(self.declared) < DECLARED_MAX):
            self.declared[name] = artifact

    def first(self, name: str) -> Any:
        """Return the value of the first message with this name; None if there is none."""
        return next((message[name] for message in self.kept if name in message), None)


def _progress(reported: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that progress has: two numbers and a short text."""
    done, total, message = (reported.get(name) for name in ("done", "total", "message"))
    return {
        "done": done if isinstance(done, int | float) else 0,
        "total": total if isinstance(total, int | float) else 0,
        "message": message[:MESSAGE_CHARS_MAX] if isinstance(message, str) else "",
    }


def _finite(digits: str) -> float:
    """Read a number, and refuse one that is too large for a float."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
