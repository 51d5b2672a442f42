"""``ade runs``: list, follow, explain and repeat runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.remote.connect import connected
from ade.cli.remote.print_job import (
    download_artifacts,
    exit_of,
    list_artifacts,
    print_events,
    print_logs,
)
from ade.cli.remote.show import duration, note_of, show, show_fields, show_rows, status
from ade.cli.remote.watch import detachable, watched
from ade.cli.run_summary import counted

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.sync.runs import Run

LIST_MAX = 50
NAMES_MAX = 1000
COLUMNS = (
    "id",
    "configuration",
    "status",
    "evaluation",
    "rows",
    "issues",
    "created",
    "took",
    "note",
)
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run.")]
Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting; the run goes on.")
]

app = typer.Typer(help="List, follow, explain and repeat runs.", invoke_without_command=True)


@app.callback()
def runs(
    context: typer.Context,
    statuses: Annotated[
        list[str] | None, typer.Option("--status", help="Only these; several times.")
    ] = None,
    evaluation: Annotated[
        list[str] | None, typer.Option(help="complete, partial or unusable; several times.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only runs of this configuration.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = LIST_MAX,
) -> None:
    """List runs, the newest first; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        found = list(
            client.runs.list(
                status=statuses, evaluation=evaluation, configuration=config, limit=limit
            )
        )
        names = names_of(client) if found else {}
        show_rows(found, COLUMNS, lambda run: row_of(run, names), "No run matches.")


def names_of(client: Client) -> dict[str, str]:
    """Return the names of the configurations by their ids."""
    return {one.id: one.name for one in client.configurations.list(limit=NAMES_MAX)}


def row_of(run: Any, names: dict[str, str]) -> tuple[Any, ...]:
    """Return the cells of a run in a list."""
    return (
        run.id,
        names.get(run.configuration_id, run.configuration_id),
        status(run.status),
        status(run.evaluation),
        (run.counts or {}).get("rows"),
        issues_of(run),
        run.created_at,
        duration(run.duration_ms),
        note_of(run),
    )


def issues_of(run: Any) -> str:
    """Say how many issues a run found."""
    found = (run.counts or {}).get("issues") or {}
    return ", ".join(f"{count} {severity}" for severity, count in found.items() if count)


@app.command("show")
def show_run(run_id: RunId) -> None:
    """Show a run."""
    with connected() as client:
        print_run(client.runs.get(run_id), client)


@app.command("wait")
def wait(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="The ids of runs.")],
    timeout: Timeout = None,
) -> None:
    """Wait for the end of runs; the exit code says how they ended."""
    with connected() as client:
        found = [client.runs.get(run_id) for run_id in run_ids]
        going = [run.id for run in found if not run.has_ended]
        with detachable(
            f"Detached: {counted(len(going), 'run')} left running.", *words_for_waiting(going)
        ):
            ended = [watched(run, timeout) for run in found]
        if len(ended) == 1:
            print_run(ended[0], client)
        else:
            names = names_of(client)
            show_rows(ended, COLUMNS, lambda run: row_of(run, names), "")
        raise typer.Exit(max(exit_of(run) for run in ended))


def words_for_waiting(run_ids: Sequence[str]) -> list[str]:
    """Say how to come back to runs, and how to stop them."""
    if not run_ids:
        return []
    ids = " ".join(run_ids)
    return [f"Come back: ade runs wait {ids}", f"Stop them: ade runs cancel {ids}"]


@app.command("output")
def output(
    run_id: RunId,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file or a folder; else normalized.xlsx.")
    ] = None,
) -> None:
    """Save the workbook that a run wrote."""
    with connected() as client:
        place = client.runs.get(run_id).output(out)
        show(str(place), lambda: typer.echo(place))


@app.command("explain")
def explain(run_id: RunId) -> None:
    """Show how each column was mapped and why, and what was found wrong."""
    from ade.cli.run_summary import explain as draw

    with connected() as client:
        found = dict(client.runs.get(run_id).explanation())
        show(found, lambda: draw(found))


@app.command("artifacts")
def artifacts(run_id: RunId) -> None:
    """List the files that a run left."""
    with connected() as client:
        list_artifacts(client.runs.get(run_id).artifacts())


@app.command("download")
def download(
    run_id: RunId,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to.")] = Path(),
    name: Annotated[str | None, typer.Option(help="Only the file of this name.")] = None,
) -> None:
    """Save the files that a run left, checked against their digests."""
    with connected() as client:
        download_artifacts(client.runs.get(run_id).artifacts(), out, name)


@app.command("logs")
def logs(run_id: RunId) -> None:
    """Print what a run and its build wrote, and follow it until the run has ended."""
    with connected() as client, detachable(f"Detached. `ade runs logs {run_id}` comes back."):
        print_logs(client.runs.get(run_id).logs())


@app.command("events")
def events(run_id: RunId) -> None:
    """Print what happens to a run, until it has ended."""
    with connected() as client, detachable(f"Detached. `ade runs events {run_id}` comes back."):
        print_events(client.runs.get(run_id).events())


@app.command("cancel")
def cancel(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="The ids of runs.")],
    reason: Annotated[str | None, typer.Option(help="Why; it is kept with the run.")] = None,
) -> None:
    """Cancel runs; those that run stop a little later."""
    with connected() as client:
        found = [client.runs.get(run_id).cancel(reason) for run_id in run_ids]
        names = names_of(client)
        show_rows(found, COLUMNS, lambda run: row_of(run, names), "")


@app.command("rerun")
def rerun(
    run_id: RunId,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Timeout = None,
) -> None:
    """Run the same version on the same document again, and show the new run."""
    with connected() as client:
        run = client.runs.get(run_id).rerun()
        if wait:
            with detachable("Detached: the run goes on.", *words_for_waiting([run.id])):
                run = watched(run, timeout)
        print_run(run, client)
        if wait:
            raise typer.Exit(exit_of(run))


def print_run(run: Run, client: Client) -> None:
    """Print what is known of a run."""
    version = "draft" if run.version is None else f"version {run.version.sequence}"
    build = None if run.build is None else status(run.build.status)
    counts = run.counts or {}
    show_fields(
        run.raw,
        {
            "run": run.id,
            "configuration": names_of(client).get(run.configuration_id, run.configuration_id),
            "version": version,
            "document": run.document_id,
            "status": status(run.status),
            "note": note_of(run),
            "evaluation": status(run.evaluation),
            "rows": counts.get("rows"),
            "columns mapped": counts.get("columns_mapped"),
            "issues": issues_of(run),
            "rows left out": counts.get("skipped_rows") or None,
            "build": build,
            "again of": run.rerun_of,
            "created": run.created_at,
            "started": run.started_at,
            "finished": run.finished_at,
            "took": duration(run.duration_ms),
            "isolation": run.isolation,
        },
    )
