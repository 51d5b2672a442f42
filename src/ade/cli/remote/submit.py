"""``ade submit``: run a configuration on files, many at once, and show what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.connect import code_of, come_back, connected, is_watched
from ade.cli.remote.file_runs import FileRun, FileRuns, RunOptions
from ade.cli.remote.jobs import say_busy
from ade.cli.remote.runs import issues_of, words_for_waiting
from ade.cli.remote.show import duration, note_of, show, status, table
from ade.cli.remote.watch import bars, uploading, watched
from ade.cli.run_summary import counted

CONCURRENCY = 4
CONCURRENCY_MAX = 32
COLUMNS = ("file", "run", "status", "evaluation", "rows", "issues", "took", "output", "note")


def submit(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Spreadsheets."),
    ],
    config: Annotated[
        str, typer.Option("--config", metavar="NAME", help="The configuration, or its id.")
    ],
    wait: Annotated[bool, typer.Option("--wait", help="Wait, and save the outputs.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where outputs go, as NAME.normalized.xlsx.")
    ] = Path(),
    version: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Or active, or draft; else active if there is one."),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="xlsx, csv, parquet or jsonl; several times."),
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(help="never, unusable, partial, errors or warnings.")
    ] = None,
    priority: Annotated[str | None, typer.Option(help="high, normal or low.")] = None,
    network: Annotated[
        bool | None, typer.Option("--network", help="Let the package use the network.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=CONCURRENCY_MAX, help="How many to send at once.")
    ] = CONCURRENCY,
) -> None:
    """Run a configuration on files; with --wait, save what they became.

    While the queue is full, files wait for a place in it. Ctrl-C leaves what was submitted running.
    """
    number = int(version) if version is not None and version.isdigit() else version
    options = RunOptions(number, priority, network, fail_on, tuple(formats or ()) or None)
    with connected(patient=True, on_busy=None if is_watched() else say_busy) as client:
        work = FileRuns(client, client.configurations.find_id(config), options, concurrency)
        done: list[FileRun] = []
        try:
            _submit(work, files, done)
            if wait:
                _wait(work, out, done)
        except KeyboardInterrupt:
            raise _detached(done, files) from None
        done.sort(key=lambda one: files.index(one.file))
        show([one.raw for one in done], lambda: table(COLUMNS, map(_row, done)))
        raise typer.Exit(_exit_code(done, wait=wait))


def _submit(work: FileRuns, files: list[Path], done: list[FileRun]) -> None:
    """Upload and start everything; what was started is in `done` at every moment."""
    if len(files) == 1:
        with uploading(files[0].name) as sent:
            done.append(work.start(files[0], sent))
        return
    with bars() as progress:
        bar = progress.add_task("submitting", total=len(files)) if progress else None
        for one in work.start_all(files):
            done.append(one)
            if progress is not None and bar is not None:
                progress.advance(bar)


def _wait(work: FileRuns, out: Path, done: list[FileRun]) -> None:
    """Wait for every run and save what it wrote."""
    started = [one for one in done if one.run is not None]
    if len(started) == 1:
        one = started[0]
        one.run = watched(one.run)
        work.save(one, out, one.output_name)
        return
    with bars() as progress:
        bar = progress.add_task("running", total=len(started)) if progress else None
        for _ in work.finish_all(started, out):
            if progress is not None and bar is not None:
                progress.advance(bar)


def _detached(done: list[FileRun], files: list[Path]) -> typer.Exit:
    ids = [one.run.id for one in done if one.run is not None and not one.run.has_ended]
    lines = [f"Detached: {counted(len(ids), 'run')} left running.", *words_for_waiting(ids)]
    known = {one.file for one in done}
    left = [str(file) for file in files if file not in known]
    if left:
        lines.append(f"Perhaps not submitted: {' '.join(left)}")
    return come_back(*lines)


def _row(one: FileRun) -> tuple[Any, ...]:
    if one.run is None:
        return (one.file, "", status("failed"), "", "", "", "", "", str(one.error))
    run = one.run
    return (
        one.file,
        run.id,
        status(run.status),
        status(run.evaluation),
        (run.counts or {}).get("rows"),
        issues_of(run),
        duration(run.duration_ms),
        one.output,
        str(one.error) if one.error is not None else note_of(run),
    )


def _exit_code(done: list[FileRun], *, wait: bool) -> ExitCode:
    """Return the code of what could not be submitted or fetched first, else of the runs."""
    for one in done:
        if one.error is not None:
            return code_of(one.error)
    failed = wait and any(one.run is None or not one.run.succeeded for one in done)
    return ExitCode.JOB_FAILED if failed else ExitCode.OK
