"""``ade builds``: list builds, read their logs, wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.connect import connected
from ade.cli.remote.runs import names_of
from ade.cli.remote.show import show, show_fields, show_rows, status
from ade.cli.remote.watch import built, detachable

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.sync.builds import Build

LIST_MAX = 50
COLUMNS = ("id", "configuration", "status", "attempt", "created", "finished", "note")
BuildId = Annotated[str, typer.Argument(metavar="BUILD", help="The id of a build.")]

app = typer.Typer(help="List builds, read their logs, wait for them.", invoke_without_command=True)


@app.callback()
def builds(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--status", help="Only these.")] = None,
    config: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only builds of this configuration.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = LIST_MAX,
) -> None:
    """List builds, the newest first; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        configuration_id = None if config is None else client.configurations.find_id(config)
        found = list(
            client.builds.list(configuration_id=configuration_id, status=state, limit=limit)
        )
        names = names_of(client) if found else {}
        show_rows(found, COLUMNS, lambda one: _row(one, names), "No build matches.")


def _row(build: Any, names: dict[str, str]) -> tuple[Any, ...]:
    return (
        build.id,
        names.get(build.configuration_id, build.configuration_id),
        status(build.status),
        build.attempt,
        build.created_at,
        build.finished_at,
        "" if build.error is None else f"{build.error.code}: {build.error.message}",
    )


@app.command("show")
def show_build(build_id: BuildId) -> None:
    """Show a build."""
    with connected() as client:
        print_build(client.builds.get(build_id), client)


@app.command("log")
def log(build_id: BuildId) -> None:
    """Print the log of a build so far."""
    with connected() as client:
        text = client.builds.get(build_id).log()
        show({"build_id": build_id, "log": text}, lambda: typer.echo(text, nl=False))


@app.command("wait")
def wait(
    build_id: BuildId,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting; it goes on.")
    ] = None,
) -> None:
    """Wait until a build is ready; the exit code says how it ended."""
    with connected() as client:
        build = client.builds.get(build_id)
        with detachable(
            f"Detached: build {build.id} goes on. Come back: ade builds wait {build.id}"
        ):
            build = built(build, timeout)
        print_build(build, client)
        raise typer.Exit(exit_of_build(build))


@app.command("cancel")
def cancel(build_id: BuildId) -> None:
    """Cancel a build; runs that wait for it fail."""
    with connected() as client:
        print_build(client.builds.get(build_id).cancel(), client)


def exit_of_build(build: Build) -> ExitCode:
    """Return the exit code for how a build ended."""
    return ExitCode.OK if build.status == "ready" else ExitCode.JOB_FAILED


def print_build(build: Build, client: Client) -> None:
    """Print what is known of a build."""
    error = build.error
    show_fields(
        build.raw,
        {
            "build": build.id,
            "configuration": names_of(client).get(build.configuration_id, build.configuration_id),
            "status": status(build.status),
            "error": None if error is None else f"{error.code}: {error.message}",
            "environment": build.environment,
            "attempt": build.attempt,
            "job": build.job_id,
            "created": build.created_at,
            "started": build.started_at,
            "finished": build.finished_at,
        },
    )
