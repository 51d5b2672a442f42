"""Record the events of a run, from which everything that is reported about it is derived.

No event holds the value of a data cell. An event may only hold coordinates, counts, names of fields
and rules, literals of the package's source, and headers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TextIO

RunEvent = dict[str, Any]


class EventName(StrEnum):
    """The events of a run, in the order in which they happen."""

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
    EventName.RUN_STARTED: "`job_id`, `engine`, the package's digest, the input's name and size;"
    " on a server also `configuration`: its id, and the sequence and digest of its version",
    EventName.PACKAGE_LOADED: "the package's `name` and `fields`",
    EventName.FILE_OPENED: "the file's `format`; for a text file also `encoding` and `delimiter`",
    EventName.SHEET_READ: "a sheet and the tables in it: stage `structure`",
    EventName.SHEET_SKIPPED: "a sheet that is not read, and the `reason`; after the first 100 of a"
    " file, the number (`count`) of sheets with one reason and no name",
    EventName.TABLE_MAPPED: "the field of each column of a table: stage `mapping`",
    EventName.TABLE_TRANSFORMED: "the number of changed cells by field: stage `transform`",
    EventName.TABLE_VALIDATED: "the issues: stage `validate`",
    EventName.TABLE_WRITTEN: "the number of `rows` of a table, and their `sheet` in the output",
    EventName.OUTPUT_WRITTEN: "the output workbook is complete: stage `output`",
    EventName.RUN_FAILED: "the `error`; the last event of a run that failed",
    EventName.RUN_FINISHED: "the `evaluation`; the last event of a run that succeeded",
}


class Recorder:
    """Number events and write each one to a stream as it happens."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        timings: bool = True,
        clock: Callable[[], float] = time.monotonic,
        on_event: Callable[[RunEvent], None] | None = None,
    ) -> None:
        self.events: list[RunEvent] = []
        self._on_event = on_event
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
        if self._on_event is not None:
            self._on_event(event)


def step_of(event: RunEvent) -> str:
    """Describe an event in a few words, without the names and texts of the input."""
    data = event["data"]
    counts = [f"{name} {data[name]}" for name in ("table", "rows") if type(data.get(name)) is int]
    return " ".join([str(event["event"]), *counts])
