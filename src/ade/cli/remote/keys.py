"""``ade keys``: list, make and revoke API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.connect import connected, failed
from ade.cli.remote.show import show, show_rows

if TYPE_CHECKING:
    from ade.client.answers.directory import Key

COLUMNS = ("id", "label", "role", "user", "created", "revoked")

app = typer.Typer(help="List, make and revoke API keys.", invoke_without_command=True)


@app.callback()
def keys(context: typer.Context) -> None:
    """List the keys of the workspace; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        show_rows(client.keys.all(), COLUMNS, _row, "The workspace has no key of its own.")


def _row(key: Any) -> tuple[Any, ...]:
    return (key.id, key.label, key.role, key.user_name, key.created_at, key.revoked_at)


@app.command("create")
def create(
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What it is for.")],
    role: Annotated[str | None, typer.Option(help="viewer, editor or admin.")] = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Another member, instead of yourself.")
    ] = None,
) -> None:
    """Make a key and print it; it is not shown again."""
    with connected() as client:
        made = client.keys.create(label, role=role, user_id=user)
        show(made.raw, lambda: _print_secret(made))


def _print_secret(made: Key) -> None:
    typer.echo(made.secret)
    typer.echo("It is not shown again.", err=True)


@app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="KEY", help="The label or the id of a key.")],
) -> None:
    """Revoke a key; it stops working at once."""
    with connected() as client:
        gone = client.keys.revoke(_find(client.keys.all(), name))
        show(gone.raw, lambda: typer.echo(f"Revoked {gone.label} ({gone.id})."))


def _find(known: list[Key], name: str) -> str:
    """Return the id of the key that has this id, or that is valid and has this label."""
    found = {one.id for one in known if one.id == name}
    found = found or {one.id for one in known if one.label == name and one.revoked_at is None}
    if len(found) > 1:
        ids = ", ".join(sorted(found))
        raise failed(f"Several keys have the label {name!r}; use an id: {ids}", ExitCode.USAGE)
    if not found:
        labels = ", ".join(one.label for one in known if one.revoked_at is None) or "none"
        raise failed(f"There is no valid key {name!r}; there are: {labels}.", ExitCode.NOT_FOUND)
    return found.pop()
