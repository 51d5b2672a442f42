"""``ade worker``: run jobs of a shared database, without an HTTP API."""

from pathlib import Path
from typing import Annotated

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit


def worker(
    exit_when_idle: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Leave when no job came for so long."),
    ] = None,
    walltime: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Be gone after so long: drain the grace period and 60 s before, and take no job"
            " whose timeout is longer than what is left until then.",
        ),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The order to an engine that started this worker."),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Read settings from it instead of .env."),
    ] = None,
) -> None:
    """Run jobs beside other processes; needs PostgreSQL."""
    from ade.domain.scaling import DRAIN_MARGIN_SECONDS, drain_after_seconds
    from ade.process.compose import Pilot, is_sqlite
    from ade.process.serve import work
    from ade.telemetry.log_setup import set_up_logs

    settings = settings_or_exit(env_file)
    drain_after = None
    if walltime is not None:
        drain_after = drain_after_seconds(walltime, settings.drain_grace_seconds)
        if not drain_after:
            least = settings.drain_grace_seconds + DRAIN_MARGIN_SECONDS
            raise typer.BadParameter(
                f"it must be longer than {least:g} s, the grace period and a margin of"
                f" {DRAIN_MARGIN_SECONDS:g} s, or the worker would take no job",
                param_hint="--walltime",
            )
    if is_sqlite(settings):
        typer.echo(
            "ade: a separate worker needs a database that several processes can write to."
            " SQLite has one owner: `ade serve` runs the jobs itself"
            " (ADE_MAX_CONCURRENCY says how many). Set ADE_DATABASE_URL=postgresql://...",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
    set_up_logs(settings.log_format, settings.log_level)
    pilot = Pilot(exit_when_idle, drain_after, block)
    run(lambda: work(settings, lambda name: typer.echo(f"worker {name} is ready"), pilot))
