"""``ade link``: make a link that signs a browser in once, on the machine of the server."""

from typing import Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

MINUTES = 15
MINUTES_MAX = 24 * 60


def link(
    minutes: Annotated[
        int, typer.Option(min=1, max=MINUTES_MAX, help="How long the link works.")
    ] = MINUTES,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the server; instead of ADE_PORT.")
    ] = None,
) -> None:
    """Make a link that signs a browser in once, as an operator; needs the database only."""
    settings = settings_or_exit()
    from ade.domain.errors import AdeError, NotFound
    from ade.process.links import make_link

    if port is None and settings.port == 0 and settings.public_url is None:
        raise typer.BadParameter("ADE_PORT=0 says no port: give that of the server.")
    try:
        made = make_link(settings, minutes * 60, port or settings.port)
    except AdeError as refused:
        typer.echo(f"ade: {refused.detail}", err=True)
        missing = isinstance(refused, NotFound)
        raise typer.Exit(ExitCode.NOT_FOUND if missing else ExitCode.UNAVAILABLE) from None
    typer.echo(made)
    typer.echo(f"It works once, for {minutes} minutes.", err=True)
