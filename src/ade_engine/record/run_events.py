"""One stream of events is the source of everything that a run says about itself.

Events are facts about where things are and how many there are. No event holds the value of a data
cell: whoever emits one may only put into it what this module's callers can vouch for (coordinates,
counts, names of fields and rules, texts that stand in the package's source, headers).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TextIO

RunEvent = dict[str, Any]


class EventName(StrEnum):
    """Name everything that happens in a run, in the order in which it happens."""

    RUN_STARTED = "run.started"
    PACKAGE_LOADED = "package.loaded"
    FILE_OPENED = "file.opened"
    SHEET_READ = "sheet.read"
    SHEET_SKIPPED = "sheet.skipped"
    TABLE_MAPPED = "table.mapped"
    TABLE_TRANSFORMED = "table.transformed"
    TABLE_VALIDATED = "table.validated"
    TABLE_WRITTEN = "table.written"
    OUTPUT_WRITTEN = "output.written"
    RUN_FAILED = "run.failed"
    RUN_FINISHED = "run.finished"


MEANINGS = {
    EventName.RUN_STARTED: "`job_id`, `engine`, the package's digest, the input's name and size",
    EventName.PACKAGE_LOADED: "the package's `name` and `fields`",
    EventName.FILE_OPENED: "the file's `format`, and of text its `encoding` and `delimiter`",
    EventName.SHEET_READ: "a sheet and the tables in it: stage `structure`",
    EventName.SHEET_SKIPPED: "a sheet that the settings leave out, and the `reason`",
    EventName.TABLE_MAPPED: "what each column of a table is: stage `mapping`",
    EventName.TABLE_TRANSFORMED: "the cells that changed: stage `transform`",
    EventName.TABLE_VALIDATED: "the issues: stage `validate`",
    EventName.TABLE_WRITTEN: "the `rows` of a table, and the output's `sheet` that they are in",
    EventName.OUTPUT_WRITTEN: "the workbook is complete: stage `output`",
    EventName.RUN_FAILED: "the `error`; the last event of a run that failed",
    EventName.RUN_FINISHED: "the `evaluation`; the last event of a run that succeeded",
}


class Recorder:
    """Take events, number them, and write each one down as it comes."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        timings: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.events: list[RunEvent] = []
        self._stream = stream
        self._clock = clock if timings else None
        self._start = clock()

    def emit(self, name: EventName, /, **data: Any) -> None:
        """Add an event to the stream."""
        event: RunEvent = {"seq": len(self.events) + 1, "event": name.value}
        if self._clock is not None:
            event["elapsed_ms"] = round((self._clock() - self._start) * 1000)
        event["data"] = data
        self.events.append(event)
        if self._stream is not None:
            self._stream.write(json.dumps(event, ensure_ascii=False) + "\n")
            self._stream.flush()
