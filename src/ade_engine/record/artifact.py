"""Derive the artifact from the events: what was decided and why, without any cell's value.

The same events give the same artifact, byte for byte. Two runs of the same input and package differ
only in `timings`; a run without timings leaves that key out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ade_engine.record.run_events import EventName, RunEvent
from ade_engine.record.skipped import PARTS_MAX, skipped_counts, skipped_parts

VERSION = 1
STAGE_OF_EVENT = {
    EventName.SHEET_READ: "structure",
    EventName.TABLE_MAPPED: "mapping",
    EventName.TABLE_TRANSFORMED: "transform",
    EventName.TABLE_VALIDATED: "validate",
    EventName.OUTPUT_WRITTEN: "output",
}
STAGE_ORDER = ("structure", "mapping", "transform", "validate", "output")


def artifact_of(events: Iterable[RunEvent]) -> dict[str, Any]:
    """Derive the artifact from the events of a run."""
    events = list(events)
    by_name = _by_name(events)
    started = by_name[EventName.RUN_STARTED][0]["data"]
    none: RunEvent = {"event": "", "data": {}}
    ended = next((event for event in reversed(events) if event["event"] in _ENDS), none)
    succeeded = ended["event"] == EventName.RUN_FINISHED
    package = {**started["package"], **_first(by_name, EventName.PACKAGE_LOADED)}
    artifact = {
        "version": VERSION,
        "job_id": started["job_id"],
        "status": "succeeded" if succeeded else "failed",
        "evaluation": ended["data"].get("evaluation"),
        "engine": started["engine"],
        "package": package,
        "input": {**started["input"], **_first(by_name, EventName.FILE_OPENED)},
        "summary": summary_of(events),
        "skipped": _skipped(events),
        "events": _stages(events),
        "error": ended["data"].get("error"),
    }
    if "configuration" in started:
        artifact["configuration"] = started["configuration"]
    if "elapsed_ms" in ended:
        artifact["timings"] = _timings(events)
    return artifact


def write_artifact(artifact: dict[str, Any], path: Path) -> None:
    """Write the artifact atomically."""
    scratch = path.with_name(f".{path.name}.part")
    text = json.dumps(artifact, indent=2, ensure_ascii=False) + "\n"
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


_ENDS = (EventName.RUN_FINISHED, EventName.RUN_FAILED)


def _skipped(events: list[RunEvent]) -> dict[str, Any]:
    parts = list(skipped_parts(events))
    return {
        "parts": [part.as_json() for part in parts[:PARTS_MAX]],
        "parts_omitted": max(len(parts) - PARTS_MAX, 0),
    }


def _by_name(events: Iterable[RunEvent]) -> dict[str, list[RunEvent]]:
    by_name: dict[str, list[RunEvent]] = {}
    for event in events:
        by_name.setdefault(event["event"], []).append(event)
    return by_name


def _first(by_name: dict[str, list[RunEvent]], name: EventName) -> dict[str, Any]:
    return by_name[name][0]["data"] if name in by_name else {}


def _stages(events: list[RunEvent]) -> list[dict[str, Any]]:
    staged = [
        {"stage": STAGE_OF_EVENT[EventName(event["event"])], **event["data"]}
        for event in events
        if event["event"] in STAGE_OF_EVENT
    ]
    return sorted(staged, key=lambda event: STAGE_ORDER.index(event["stage"]))


def summary_of(events: Iterable[RunEvent]) -> dict[str, Any]:
    """Count tables, rows, columns, issues and what was left out."""
    events = list(events)
    by_name = _by_name(events)

    def data(name: EventName) -> list[dict[str, Any]]:
        return [event["data"] for event in by_name.get(name, [])]

    validated = data(EventName.TABLE_VALIDATED)
    columns = [one for mapped in data(EventName.TABLE_MAPPED) for one in mapped["columns"]]
    counts = {key: sum(one[key] for one in validated) for key in ("errors", "warnings", "infos")}
    return {
        "tables": sum(len(sheet["tables"]) for sheet in data(EventName.SHEET_READ)),
        "tables_written": len(data(EventName.TABLE_WRITTEN)),
        "rows_written": sum(one["rows"] for one in data(EventName.TABLE_WRITTEN)),
        "columns_mapped": sum(one["target"] is not None for one in columns),
        "columns_unmapped": sum(one["target"] is None for one in columns),
        "skipped": skipped_counts(events),
        "issues": sum(counts.values()),
        **counts,
    }


def _timings(events: list[RunEvent]) -> dict[str, int]:
    """Sum the time of each stage: an event's time since the event before it."""
    spent: dict[str, int] = {}
    before = 0
    for event in events:
        stage = STAGE_OF_EVENT.get(event["event"])
        if event["event"] == EventName.TABLE_WRITTEN or stage in ("transform", "validate"):
            stage = "process_table"
        if stage is not None:
            spent[stage] = spent.get(stage, 0) + event["elapsed_ms"] - before
        before = event["elapsed_ms"]
    return {**{f"{stage}_ms": ms for stage, ms in spent.items()}, "total_ms": before}
