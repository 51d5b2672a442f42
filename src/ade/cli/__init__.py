"""The command line: a table of commands, one module per command or group of them."""

import os
from typing import Annotated

import typer

from ade.cli.command_table import COMMANDS
from ade.cli.lazy_commands import lazy_group
from ade.version import __version__

app = typer.Typer(
    name="ade",
    help="A Durable Executor: every accepted job reaches exactly one end.",
    cls=lazy_group(COMMANDS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its listing of locals would print secrets
    rich_markup_mode=None,  # plain help costs a third of the time
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ade {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    if os.environ.get("NO_COLOR"):
        context.color = False


def main() -> None:
    """Run the command line."""
    app()
