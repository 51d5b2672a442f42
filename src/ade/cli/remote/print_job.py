"""What jobs and runs print alike: events, logs, files, and how they ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.choices import choices
from ade.cli.remote.connect import failed
from ade.cli.remote.show import local_time, printable, show, show_rows, size, table
from ade.cli.remote.watch import bars, short

if TYPE_CHECKING:
    from ade.client.answers.jobs import Event, LogPiece
    from ade.client.sync.artifacts import Artifact


def exit_of(one: Any) -> ExitCode:
    """Return the exit code for how a job or a run ended."""
    return ExitCode.OK if one.succeeded else ExitCode.JOB_FAILED


def print_events(events: Iterable[Event]) -> None:
    """Print events as they come: one line each, of JSON if that was chosen."""
    for event in events:
        if choices().as_json:
            typer.echo(json.dumps(event.raw, ensure_ascii=False))
            continue
        data = {name: value for name, value in event.data.items() if value not in (None, "")}
        told = json.dumps(data, ensure_ascii=False) if data else ""
        typer.echo(printable(f"{local_time(event.at)}  {event.event:<20} {told}").rstrip())


def print_logs(pieces: Iterable[LogPiece]) -> None:
    """Print output as it comes: what a job wrote to stderr goes to stderr."""
    for piece in pieces:
        if choices().as_json:
            typer.echo(json.dumps(piece.raw, ensure_ascii=False))
            continue
        to_stderr = piece.stream == "stderr"
        watched = (sys.stderr if to_stderr else sys.stdout).isatty()
        typer.echo(printable(piece.text) if watched else piece.text, nl=False, err=to_stderr)


def list_artifacts(artifacts: Iterable[Artifact]) -> None:
    """List files that a job left."""
    show_rows(
        artifacts,
        ("id", "name", "kind", "format", "size", "digest"),
        lambda one: (one.id, one.name, one.kind, one.format, size(one.size_bytes), one.digest),
        "It left no files.",
    )


def download_artifacts(artifacts: Sequence[Artifact], out: Path, name: str | None) -> None:
    """Save files in a folder, and say where they are."""
    wanted = [one for one in artifacts if name in (None, one.name)]
    if not wanted:
        known = ", ".join(one.name for one in artifacts) or "none"
        raise failed(f"There is no file {name!r}; it left: {known}.", ExitCode.NOT_FOUND)
    out.mkdir(parents=True, exist_ok=True)
    saved = []
    with bars() as progress:
        bar = progress.add_task("downloading", total=len(wanted)) if progress else None
        for one in wanted:
            if progress is not None and bar is not None:
                progress.update(bar, description=short(one.name))
            saved.append(one.download(out))
            if progress is not None and bar is not None:
                progress.advance(bar)
    show(
        [str(path) for path in saved],
        lambda: table(
            ("file", "size"),
            ((path, size(one.size_bytes)) for path, one in zip(saved, wanted, strict=True)),
        ),
    )
