"""``ade worker``: run jobs of a shared database, without an HTTP API."""

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit


def worker() -> None:
    """Run jobs beside other processes; needs PostgreSQL."""
    from ade.process.compose import is_sqlite
    from ade.process.serve import work
    from ade.telemetry.log_setup import set_up_logs

    settings = settings_or_exit()
    if is_sqlite(settings):
        typer.echo(
            "ade: a separate worker needs a database that several processes can write to."
            " SQLite has one owner: `ade serve` runs the jobs itself"
            " (ADE_MAX_CONCURRENCY says how many). Set ADE_DATABASE_URL=postgresql://...",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
    set_up_logs(settings.log_format, settings.log_level)
    run(lambda: work(settings, lambda name: typer.echo(f"worker {name} is ready")))
