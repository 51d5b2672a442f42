"""``ade serve``: the HTTP API, a worker and the sweeper in one process."""

from typing import Annotated

import typer

from ade.cli.event_loop import run
from ade.cli.settings import settings_or_exit


def serve(
    host: Annotated[str | None, typer.Option(help="Instead of ADE_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Instead of ADE_PORT; 0 takes a free one.")
    ] = None,
    worker: Annotated[
        bool, typer.Option(help="Run jobs as well, or leave that to `ade worker`.")
    ] = True,
) -> None:
    """Accept jobs over HTTP and run them, until it is stopped."""
    from ade import __version__
    from ade.process.serve import serve as serve_http
    from ade.telemetry.log_setup import set_up_logs

    given = {"host": host, "port": port}
    settings = settings_or_exit().model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )
    set_up_logs(settings.log_format, settings.log_level)

    def ready(link: str, first_key: str | None) -> None:
        typer.echo(f"ADE {__version__} is ready: {link}")
        if first_key is not None:
            typer.echo("The link signs a browser in once, within 24 hours; `ade link` makes more.")
            typer.echo(f"The first API key is not shown again: {first_key}")

    run(lambda: serve_http(settings, ready, works=worker))
