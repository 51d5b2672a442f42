"""A runner whose hooks end as a test says, and an installer that never ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ade.domain.job import Status
from ade.domain.outcome import Category, CodeLocation, JobError, Outcome
from ade.sandbox.child_messages import OnProgress
from ade.sandbox.spec import RunSpec

RETURNED = {
    "annotations": [{"note": 1}],
    "fields": ["a"],
    "warnings": [],
    "name": "c",
    "digest": "d",
    # What a run returns.
    "evaluation": "complete",
    "summary": {
        "tables": 1,
        "tables_written": 1,
        "rows_written": 1,
        "columns_mapped": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "skipped": {},
    },
}


class Scripted:
    """Be a runner whose hooks end as a test says, or only when they are killed."""

    isolation = ("paper",)

    def __init__(self) -> None:
        self.refusal: str | None = None
        self.outcomes: list[Outcome] = []
        self.hangs = False
        self.location: CodeLocation | None = None
        self.given: list[RunSpec] = []
        self.started = asyncio.Event()
        self.killed = 0

    def start(self, spec: RunSpec, on_progress: OnProgress) -> "Scripted.Hooks":
        """Note what is to be run."""
        self.given.append(spec)
        self.started.set()
        return Scripted.Hooks(self)

    class Hooks:
        """Imitate hooks that were started."""

        def __init__(self, runner: "Scripted") -> None:
            self._runner = runner
            self._killed = asyncio.Event()

        def when_started(self, call: Callable[[], None]) -> None:
            """Start at once."""
            call()

        async def outcome(self) -> Outcome:
            """End as the test says."""
            if self._runner.hangs:
                await self._killed.wait()
                return replace(internal("STOPPED"), location=self._runner.location)
            return self._runner.outcomes.pop(0) if self._runner.outcomes else activated()

        def stop(self) -> None:
            """End."""
            self.kill()

        def kill(self) -> None:
            """End."""
            self._runner.killed += not self._killed.is_set()
            self._killed.set()

        def time_out(self) -> None:
            """End."""
            self.kill()


def activated() -> Outcome:
    """End with an active package."""
    outputs = {"result_json": RETURNED, "stdout": "printed", "stderr": ""}
    return Outcome(Status.SUCCEEDED, {"outputs": outputs})


def internal(code: str) -> Outcome:
    """Fail through no fault of the package."""
    return Outcome(Status.FAILED, {}, JobError(Category.INTERNAL_ERROR, code, "ours"))


def slow_uv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an installer in place that never ends; return the file that will hold its process id."""
    slow, pid_file = folder / "slow", folder / "pid"
    slow.write_text(
        f"#!/bin/sh\necho $$ > {pid_file}.new\nmv {pid_file}.new {pid_file}\nsleep 600\n"
    )
    slow.chmod(0o755)
    monkeypatch.setattr("uv.find_uv_bin", lambda: str(slow))
    return pid_file
