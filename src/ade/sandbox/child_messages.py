"""Messages that a child sends on its line: progress, descriptions of its files, result or error.

Each is one line of JSON; other lines may be a stack trace, if the child was asked for one. A child
may send anything, so every message is bounded and checked, and only a few are kept.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from ade.domain.output import Stream
from ade.sandbox.spec import OnOutput, ignore_output
from ade.sandbox.stack_location import StackTrace

OnProgress = Callable[[dict[str, Any]], None]
MESSAGES_MAX = 10
PROGRESS_BYTES_MAX = 4096
MESSAGE_CHARS_MAX = 500
DEPTH_MAX = 200
RESULT = b'{"result"'
DECLARED_MAX = 1000
DECLARED_BYTES_MAX = 4096
WARNINGS_MAX = 20


class ChildMessages:
    """Keep the messages of one child, and pass on its progress and what it says it did."""

    def __init__(self, on_progress: OnProgress, on_output: OnOutput = ignore_output) -> None:
        self._on_progress = on_progress
        self._on_output = on_output
        self._has_begun = False
        self.kept: list[dict[str, Any]] = []
        self.declared: dict[str, dict[str, Any]] = {}
        self.warnings: list[str] = []
        self.progress: dict[str, Any] | None = None
        self.stack = StackTrace()

    def receive(self, line: bytes) -> None:
        """Take one line."""
        try:
            message = _DECODER.decode(line.decode("utf-8", "surrogatepass"))
        except RecursionError:
            message = {"result": None} if RESULT in line[: 2 * len(RESULT)] else {}
            is_deep = True
        except ValueError:
            self.stack.receive(line)
            return
        else:
            is_deep = line.count(b"[") + line.count(b"{") > DEPTH_MAX and is_deeper(message)
        if not isinstance(message, dict):
            return
        if is_deep:  # what is stored must be readable, by clients too
            self._keep_failure(message)
            return
        self._has_begun = self._has_begun or "begun" in message
        if self._has_begun:  # the layers were applied; from now on the job's code may send anything
            message.pop("setup_error", None)
        if (progress := message.get("progress")) is not None:
            if isinstance(progress, dict) and len(line) <= PROGRESS_BYTES_MAX:
                self.progress = _progress(progress)
                self._on_progress(self.progress)
        elif (step := message.get("step")) is not None:
            if isinstance(step, str):
                said = " ".join(step[:MESSAGE_CHARS_MAX].split())
                self._on_output(Stream.STEP, f"{said}\n".encode(errors="replace"))
        elif (artifact := message.get("artifact")) is not None:
            if isinstance(artifact, dict) and len(line) <= DECLARED_BYTES_MAX:
                self._declare(artifact)
        elif isinstance(warning := message.get("warning"), str):
            if len(self.warnings) < WARNINGS_MAX:
                self.warnings.append(warning[:MESSAGE_CHARS_MAX])
        elif len(self.kept) < MESSAGES_MAX:
            self.kept.append(message)

    def _keep_failure(self, message: dict[str, Any]) -> None:
        """Keep of a message that is nested too deep what it says about a failure.

        How deep that is does not matter: details are bounded where an error is made of them.
        """
        failure = message.get("failure")
        if "result" in message:
            failure = {"result_too_deep": DEPTH_MAX}
        if failure is not None and len(self.kept) < MESSAGES_MAX:
            self.kept.append({"failure": failure})

    def warning_logs(self) -> list[dict[str, Any]]:
        """Return the warnings of the job as lines of its log."""
        return [{"level": "warning", "message": text} for text in self.warnings]

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


def is_deeper(value: Any, depth_max: int = DEPTH_MAX) -> bool:
    """Tell whether lists and objects are nested deeper than allowed, without recursion."""
    level = [value]
    for _ in range(depth_max + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in (dict, list)
        ]
        if not level:
            return False
    return True


def _finite(digits: str) -> float:
    """Read a number, and refuse one that is too large for a float."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
