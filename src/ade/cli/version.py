"""``ade version``."""

import typer

from ade.version import __version__


def version() -> None:
    """Print the version."""
    typer.echo(f"ade {__version__}")
