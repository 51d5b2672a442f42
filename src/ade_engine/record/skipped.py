"""Count what a run left out, by reason: sheets, tables, columns and rows.

Everything is derived from the events of the run. `skipped_parts` lists what was left out where, and
`skipped_counts` adds it up. Counts are exact; the lists of rows and of parts are bounded.

| of | reasons |
| --- | --- |
| sheets | `hidden`, `not_chosen`, `beyond_limit`, `chart`, `dialog`, `macro`, `missing`,
  `no_table` |
| tables | `no_header` (its columns have no names), `no_field` (no column was mapped),
  `required_missing` (it has no required field) |
| columns | `unmapped`, `hidden` |
| rows | the kind of row (`total`, `note`, ... or a row type of the package), `hidden`,
  `outside_tables`, `in_skipped_table` |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from ade_engine.record.run_events import EventName, RunEvent

PARTS_MAX = 1_000
NOT_LEFT_OUT = ("blank",)  # rows without any cell
HEADED = "headed"  # the shape of a table with a header


class PartKind(StrEnum):
    """What can be left out."""

    SHEETS = "sheets"
    TABLES = "tables"
    COLUMNS = "columns"
    ROWS = "rows"


class TableReason(StrEnum):
    """Why a table is not in the output."""

    NO_HEADER = "no_header"
    NO_FIELD = "no_field"
    REQUIRED_MISSING = "required_missing"


@dataclass(frozen=True)
class SkippedPart:
    """Rows, columns, tables or sheets that one place of the input lost for one reason."""

    kind: PartKind
    reason: str
    count: int
    sheet: str | None = None
    table: int | None = None
    ranges: tuple[str, ...] = ()  # rows as in spreadsheet programs: `7`, `9:12`; or columns
    ranges_omitted: int = 0

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value, "ranges": list(self.ranges)}


def skipped_parts(events: Iterable[RunEvent]) -> Iterator[SkippedPart]:
    """Yield what was left out, in the order of the events."""
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        data = event["data"]
        match event["event"]:
            case EventName.SHEET_SKIPPED:
                count, name = data["count"], data["sheet"]
                yield SkippedPart(PartKind.SHEETS, data["reason"], count, name)
            case EventName.SHEET_READ:
                found |= {table["table"]: table for table in data["tables"]}
                yield from _of_sheet(data)
            case EventName.TABLE_MAPPED:
                yield from _of_table(data, found[data["table"]])


def skipped_counts(events: Iterable[RunEvent]) -> dict[str, dict[str, int]]:
    """Count what was left out: {kind: {reason: count}}."""
    counts: dict[str, Counter[str]] = {kind.value: Counter() for kind in PartKind}
    for part in skipped_parts(events):
        counts[part.kind.value][part.reason] += part.count
    return {kind: dict(sorted(found.items())) for kind, found in counts.items()}


def _of_sheet(data: dict[str, Any]) -> Iterator[SkippedPart]:
    sheet = data["sheet"]
    if not data["tables"] and data["rows"]:
        yield SkippedPart(PartKind.SHEETS, "no_table", 1, sheet)
    for kind, rows in data["unused"].items():
        if kind not in NOT_LEFT_OUT:
            yield _rows("outside_tables", rows, sheet)
    for table in data["tables"]:
        for kind, rows in table["skipped"].items():
            if kind not in NOT_LEFT_OUT:
                yield _rows(kind, rows, sheet, table["table"])
        if hidden := table["hidden_columns"]:
            letters = tuple(hidden)
            yield SkippedPart(
                PartKind.COLUMNS, "hidden", len(letters), sheet, table["table"], letters
            )


def _of_table(data: dict[str, Any], found: dict[str, Any]) -> Iterator[SkippedPart]:
    sheet, table = data["sheet"], data["table"]
    if data["evaluation"] == "unusable":
        yield SkippedPart(PartKind.TABLES, _why_unusable(data, found), 1, sheet, table)
        if rows := found["data_rows"]:
            yield SkippedPart(PartKind.ROWS, "in_skipped_table", rows, sheet, table)
    elif data["unmapped"] == "drop":
        left = tuple(one["raw"]["column"] for one in data["columns"] if one["target"] is None)
        if left:
            yield SkippedPart(PartKind.COLUMNS, "unmapped", len(left), sheet, table, left)


def _why_unusable(data: dict[str, Any], found: dict[str, Any]) -> TableReason:
    if found["shape"] != HEADED:
        return TableReason.NO_HEADER
    mapped = any(column["target"] is not None for column in data["columns"])
    return TableReason.REQUIRED_MISSING if mapped else TableReason.NO_FIELD


def _rows(reason: str, rows: Any, sheet: str, table: int | None = None) -> SkippedPart:
    ranges, omitted = tuple(rows["ranges"]), rows["ranges_omitted"]
    return SkippedPart(PartKind.ROWS, reason, rows["count"], sheet, table, ranges, omitted)
