"""``ade workspaces``: list, make and choose workspaces."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.choices import choices
from ade.cli.remote.connect import connected, failed
from ade.cli.remote.show import show, show_rows, table

COLUMNS = ("id", "slug", "name", "role", "created")

app = typer.Typer(help="List, make and choose workspaces.", invoke_without_command=True)


@app.callback()
def workspaces(context: typer.Context) -> None:
    """List the workspaces that the key sees; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        show_rows(client.workspaces.all(), COLUMNS, _row, "The key sees no workspace.")


def _row(one: Any) -> tuple[Any, ...]:
    return (one.id, one.slug, one.name, one.role, one.created_at)


@app.command("create")
def create(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Its name in addresses.")],
    name: Annotated[str | None, typer.Option(help="Its name for people.")] = None,
) -> None:
    """Make a workspace."""
    with connected() as client:
        made = client.workspaces.create(slug, name)
        show(made.raw, lambda: table(COLUMNS, [_row(made)]))


@app.command("use")
def use(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="A workspace that the key sees.")],
) -> None:
    """Use a workspace in the profile, for the commands that follow."""
    from dataclasses import replace

    from ade.client.profiles import (
        DEFAULT_PROFILE,
        PROFILE_VARIABLE,
        read_profiles,
        write_profiles,
    )

    with connected() as client:
        name = choices().profile or os.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE
        known = read_profiles()
        if name not in known or known[name].url != client.url:
            raise failed(
                f"No profile keeps {client.url}; set ADE_WORKSPACE instead.", ExitCode.USAGE
            )
        found = client.workspaces.get(slug)
        write_profiles({**known, name: replace(known[name], workspace=found.slug)})
        show(found.raw, lambda: typer.echo(f"Profile {name} now uses the workspace {found.slug}."))
