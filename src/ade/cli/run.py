"""``ade run``: normalise one file here and now, and explain what was done with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from ade_engine.errors import EngineError

RANGES_SHOWN_MAX = 3


def run_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A spreadsheet.")
    ],
    config: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The folder of the config package.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where the output goes; FILE's name with .normalized.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", help="Show where the package's code failed; it may show cell values."
        ),
    ] = False,
) -> None:
    """Normalise a file with a config package, without a server and without walls."""
    from ade_engine.errors import EngineError
    from ade_engine.normalize import ARTIFACT_FILE, Request, normalize

    folder = out if out is not None else Path(f"{file.stem}.normalized")
    try:
        # What the package prints is not part of the answer.
        with _progress() as told, redirect_stdout(sys.stderr):
            summary = normalize(Request(file, config, folder), told)
    except EngineError as failed:
        _say_failure(failed, folder, as_json=as_json, with_traceback=traceback)
        raise typer.Exit(ExitCode.JOB_FAILED) from None
    artifact = json.loads((folder / ARTIFACT_FILE).read_text(encoding="utf-8"))
    if as_json:
        typer.echo(json.dumps({**summary, "folder": str(folder)}, indent=2))
    else:
        _explain(artifact, summary, folder)
    if summary["evaluation"] != "complete":
        raise typer.Exit(ExitCode.JOB_FAILED)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar on a terminal, on stderr, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("reading", total=None)

        def told(done: int, total: int, message: str) -> None:
            bars.update(bar, description=message, completed=done, total=total or None)

        yield told


def _say_failure(failed: EngineError, folder: Path, *, as_json: bool, with_traceback: bool) -> None:
    from ade_engine.normalize import error_json

    raised = getattr(failed, "raised", None)
    if with_traceback and raised is not None:
        import traceback

        traceback.print_exception(raised)
    if as_json:
        shown = {"status": "failed", "error": error_json(failed), "folder": str(folder)}
        typer.echo(json.dumps(shown, indent=2))
        return
    for problem in getattr(failed, "problems", ()):
        typer.echo(f"error: {problem}", err=True)
    typer.echo(f"ade: {failed.code}: {failed}", err=True)


def _explain(artifact: dict[str, Any], summary: dict[str, Any], folder: Path) -> None:
    from rich.console import Console

    console = Console()
    for event in artifact["events"]:
        if event["stage"] == "structure" and not event["tables"]:
            console.print(f"sheet {event['sheet']!r}: no table was found", markup=False)
        elif event["stage"] == "mapping":
            _explain_mapping(console, event)
    _explain_issues(console, artifact)
    counts = summary["summary"]
    typer.echo(
        f"{summary['evaluation']}: {_counted(counts['rows_written'], 'row')} of"
        f" {_counted(counts['tables_written'], 'table')};"
        f" {_counted(counts['errors'], 'error')}, {_counted(counts['warnings'], 'warning')}"
    )
    if summary["missing"]:
        typer.echo(f"missing: {', '.join(summary['missing'])}", err=True)
    for name in summary["files"]:
        typer.echo(f"  {folder / name}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _explain_mapping(console: Any, event: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    where = f"{event['sheet']}!{event['range']}" if event["sheet"] else event["range"]
    title = f"table {event['table']}  {where}  {event['evaluation']}"
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
