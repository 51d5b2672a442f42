"""Print what a server answered: JSON for programs, tables and colours for people."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from ade.cli.remote.choices import choices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH_COLUMNS = 200
STATUS_STYLES = {
    "succeeded": "green",
    "ready": "green",
    "ok": "green",
    "complete": "green",
    "free": "green",
    "running": "cyan",
    "building": "cyan",
    "dispatched": "cyan",
    "queued": "yellow",
    "pending": "yellow",
    "paused": "yellow",
    "partial": "yellow",
    "degraded": "yellow",
    "failed": "bold red",
    "timed_out": "bold red",
    "unusable": "bold red",
    "down": "bold red",
    "cancelled": "dim",
}
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def show(raw: Any, draw: Callable[[], None]) -> None:
    """Print an answer as JSON, or draw it."""
    if choices().as_json:
        typer.echo(json.dumps(raw, indent=2, ensure_ascii=False))
    else:
        draw()


def show_rows(
    items: Iterable[Any], columns: Sequence[str], row: Callable[[Any], Sequence[Any]], none: str
) -> None:
    """Print answers as a JSON list, or as a table with one row for each."""
    found = list(items)
    show([one.raw for one in found], lambda: table(columns, map(row, found), none))


def show_fields(raw: Any, fields: Mapping[str, Any]) -> None:
    """Print one answer as JSON, or its fields that are not empty, one in each line."""

    def draw() -> None:
        kept = {name: value for name, value in fields.items() if value not in (None, "", (), [])}
        table(("", ""), ((name, cell(value)) for name, value in kept.items()), headed=False)

    show(raw, draw)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], none: str = "", *, headed: bool = True
) -> None:
    """Draw a table; say in one line that there is nothing."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", show_header=headed)
    for name in columns:
        made.add_column(name, overflow="fold", no_wrap=name in ("id", "run", "status"))
    for row in rows:
        made.add_row(*map(cell, row))
    if made.row_count or not none:
        console().print(made)
    else:
        typer.echo(none, err=True)


def cell(value: Any) -> Text:
    """Return the text of a cell: never markup, whatever is in it."""
    from rich.text import Text

    if isinstance(value, Text):
        return value
    if value is None:
        return Text("")
    if isinstance(value, datetime):
        return Text(local_time(value))
    if isinstance(value, Mapping):
        return Text(", ".join(f"{name} {one}" for name, one in value.items()))
    if isinstance(value, list | tuple):
        return Text(", ".join(map(str, value)))
    return Text(printable(str(value)))


def status(word: str | None) -> Text:
    """Return a status in its colour."""
    from rich.text import Text

    return Text(word or "", STATUS_STYLES.get(word or "", ""))


def console(*, stderr: bool = False) -> Console:
    """Make a console: as wide as the terminal, or wide enough for ids in a pipe."""
    from rich.console import Console

    made = Console(highlight=False, stderr=stderr, soft_wrap=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made = Console(highlight=False, stderr=stderr, width=PIPE_WIDTH_COLUMNS)
    return made


def printable(text: str) -> str:
    """Replace what would control the terminal; names and messages come from other people."""
    return "".join(
        one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in text
    )


def local_time(at: datetime | None) -> str:
    """Write a time in the zone of this machine."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(milliseconds: float | None) -> str:
    """Write a duration."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(count: float) -> str:
    """Write a number of bytes."""
    for unit in UNITS:
        if count < 1024 or unit == UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def note_of(one: Any) -> str:
    """Say why a job or a run failed or waits, in a few words."""
    if one.error is not None:
        return f"{one.error.code}: {one.error.message}"
    if one.waiting is not None:
        place = "" if one.waiting.position is None else f" (number {one.waiting.position})"
        return f"{one.waiting.detail or one.waiting.reason}{place}"
    if one.progress and not one.has_ended:
        return progress_of(one.progress)
    return ""


def progress_of(progress: Mapping[str, Any]) -> str:
    """Say how far something is."""
    total = progress.get("total")
    share = f"{progress.get('done', 0)}/{total} " if total else ""
    return f"{share}{progress.get('message') or ''}".strip()
