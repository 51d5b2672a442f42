"""Print what a run decided, and why, as tables."""

from collections.abc import Iterator
from typing import Any

import typer

RANGES_SHOWN_MAX = 3
SHAPES = {"headerless": "no header", "key_value": "names and values, no header"}


def explain(artifact: dict[str, Any]) -> None:
    """Print how columns were mapped, what was found wrong, and the outcome."""
    from rich.console import Console

    console = Console()
    shapes = {
        table["table"]: table["shape"]
        for event in artifact["events"]
        if event["stage"] == "structure"
        for table in event["tables"]
    }
    for event in artifact["events"]:
        if event["stage"] == "structure" and event["notes"]:
            notes = ", ".join(event["notes"]).replace("_", " ")
            console.print(f"sheet {event['sheet']!r}: {notes}", markup=False)
        if event["stage"] == "structure" and not event["tables"]:
            console.print(f"sheet {event['sheet']!r}: no table was found", markup=False)
        elif event["stage"] == "mapping":
            _explain_mapping(console, event, shapes[event["table"]])
    _explain_issues(console, artifact)
    counts = artifact["summary"]
    typer.echo(
        f"{artifact['evaluation']}: {counted(counts['rows_written'], 'row')} of"
        f" {counted(counts['tables_written'], 'table')};"
        f" {counted(counts['errors'], 'error')}, {counted(counts['warnings'], 'warning')}"
    )
    for line in skipped_lines(artifact):
        typer.echo(line)


def skipped_lines(artifact: dict[str, Any]) -> Iterator[str]:
    """Say what was left out, by kind and reason, and where the rows were."""
    for kind, reasons in artifact["summary"]["skipped"].items():
        if not reasons:
            continue
        noun = kind.removesuffix("s")
        listed = ", ".join(
            f"{count} {reason.replace('_', ' ')}{_places(artifact, kind, reason)}"
            for reason, count in reasons.items()
        )
        yield f"left out: {counted(sum(reasons.values()), noun)}: {listed}"


def _places(artifact: dict[str, Any], kind: str, reason: str) -> str:
    """Return a few places where something was left out, in parentheses."""
    places: list[str] = []
    for part in artifact["skipped"]["parts"]:
        if (part["kind"], part["reason"]) != (kind, reason):
            continue
        sheet = part["sheet"] or ""
        ranges = part["ranges"] or [""]
        places += [f"{sheet}!{one}" if sheet and one else sheet or one for one in ranges]
    shown = [place for place in places if place][:RANGES_SHOWN_MAX]
    more = ", ..." if len(places) > len(shown) and shown else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def counted(count: int, noun: str) -> str:
    """Return a number and a noun in the right form."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _explain_mapping(console: Any, event: dict[str, Any], shape: str) -> None:
    from rich.table import Table
    from rich.text import Text

    where = f"{event['sheet']}!{event['range']}" if event["sheet"] else event["range"]
    title = "  ".join(
        filter(None, (f"table {event['table']}", where, SHAPES.get(shape), event["evaluation"]))
    )
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("column", "header", "field", "score", "why"):
        table.add_column(name, overflow="fold", header_style="bold")
    for column in event["columns"]:
        raw = column["raw"]
        score = "" if column["score"] is None else f"{column['score']:.2f}"
        cells = (raw["column"], raw.get("header", ""), column["target"] or "-", score)
        style = None if column["target"] else "dim"
        table.add_row(*map(Text, cells), Text(_why(column)), style=style)
    console.print(table)
    console.print()


def _why(column: dict[str, Any]) -> str:
    if column["target"]:
        return ", ".join(f"{one['rule']} {one['delta']:+.2f}" for one in column["contributors"])
    near = ", ".join(f"{one['field']} {one['score']:.2f}" for one in column["candidates"])
    return f"{column['reason']} ({near})" if near else str(column["reason"])


def _explain_issues(console: Any, artifact: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    found = [
        (event, issue)
        for event in artifact["events"]
        if event["stage"] == "validate"
        for issue in event["issues"]
    ]
    if not found:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("severity", "field", "issue", "cells", "where", "message"):
        table.add_column(name, overflow="fold")
    for event, issue in found:
        places = issue["ranges"][:RANGES_SHOWN_MAX]
        more = len(issue["ranges"]) - len(places) + issue["ranges_omitted"]
        shown = ", ".join(places) + (f" and {more} more" if more else "")
        where = f"{event['sheet']}!{shown}" if event["sheet"] and shown else shown
        cells = (issue["severity"], issue["field"], issue["code"], str(issue["count"]), where)
        table.add_row(*map(Text, cells), Text(issue["message"]))
    console.print(table)
    console.print()
