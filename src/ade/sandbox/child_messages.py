"""What a child says on its line: progress on the way, what its files are, a few words at the end.

What is not JSON may be its stack, if it was asked where it is. A child may say anything there.
Nothing of it can harm the worker, and no more than a few words are kept.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from ade.sandbox.stack_location import StackTrace

OnProgress = Callable[[dict[str, Any]], None]
WORDS_MAX = 10
PROGRESS_BYTES_MAX = 4096
MESSAGE_CHARS_MAX = 500
DECLARED_MAX = 1000
DECLARED_BYTES_MAX = 4096


class ChildMessages:
    """Keep the words of one child; pass its progress on."""

    def __init__(self, tell: OnProgress) -> None:
        self._tell = tell
        self._has_begun = False
        self.kept: list[dict[str, Any]] = []
        self.declared: dict[str, dict[str, Any]] = {}
        self.progress: dict[str, Any] | None = None
        self.stack = StackTrace()

    def hear(self, line: bytes) -> None:
        """Take one line."""
        try:
            said = _DECODER.decode(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            self.stack.hear(line)
            return
        if not isinstance(said, dict):
            return
        self._has_begun = self._has_begun or "begun" in said
        if self._has_begun:  # it is the job that speaks now, and its layers stood
            said.pop("setup_error", None)
        if (progress := said.get("progress")) is not None:
            if isinstance(progress, dict) and len(line) <= PROGRESS_BYTES_MAX:
                self.progress = _progress(progress)
                self._tell(self.progress)
        elif (artifact := said.get("artifact")) is not None:
            if isinstance(artifact, dict) and len(line) <= DECLARED_BYTES_MAX:
                self._declare(artifact)
        elif len(self.kept) < WORDS_MAX:
            self.kept.append(said)

    def _declare(self, artifact: dict[str, Any]) -> None:
        name = artifact.get("name")
        if isinstance(name, str) and (name in self.declared or len(self.declared) < DECLARED_MAX):
            self.declared[name] = artifact

    def first(self, name: str) -> Any:
        """Return what was said first under a name; None if nothing was."""
        return next((word[name] for word in self.kept if name in word), None)


def _progress(said: dict[str, Any]) -> dict[str, Any]:
    """Take what everyone expects of progress: two numbers and a few words."""
    done, total, message = (said.get(name) for name in ("done", "total", "message"))
    return {
        "done": done if isinstance(done, int | float) else 0,
        "total": total if isinstance(total, int | float) else 0,
        "message": message[:MESSAGE_CHARS_MAX] if isinstance(message, str) else "",
    }


def _finite(digits: str) -> float:
    """Read a number; one that no number of this machine can hold is no JSON of ours."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
