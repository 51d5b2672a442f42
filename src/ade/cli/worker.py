"""``ade worker``: run jobs of a shared database or of a server, without an HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.process.compose import Pilot
    from ade.settings import Settings

Main = Callable[[], Coroutine[Any, Any, None]]


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
            help="Leave after so long: drain the grace period and 60 s before, and take no job"
            " whose timeout is longer than what is left until then.",
        ),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The order to an engine that started this worker."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Work for this server over HTTP, with no access to its database and storage.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="With --server: the agent's key."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --server and an operator's key: the agent to speak for."
        ),
    ] = None,
    kinds: Annotated[
        str, typer.Option(metavar="KINDS", help="With --server: the job types to take, by commas.")
    ] = "",
    env_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Read settings from it instead of .env."),
    ] = None,
) -> None:
    """Run jobs of a PostgreSQL database, or of a server over HTTP."""
    from ade.process.compose import Pilot
    from ade.telemetry.log_setup import set_up_logs

    settings = settings_or_exit(env_file)
    pilot = Pilot(exit_when_idle, _drain_after(settings, walltime), block)
    if server is not None:
        main = _remotely(settings, server, key_file, name, kinds, pilot)
    else:
        for given, option in ((key_file, "--key-file"), (name, "--name"), (kinds, "--kinds")):
            if given:
                raise typer.BadParameter("it needs --server", param_hint=option)
        main = _beside_the_database(settings, pilot)
    set_up_logs(settings.log_format, settings.log_level)
    run(main)


def _drain_after(settings: Settings, walltime: float | None) -> float | None:
    from ade.domain.scaling import DRAIN_MARGIN_SECONDS, drain_after_seconds

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
    return drain_after


def _beside_the_database(settings: Settings, pilot: Pilot) -> Main:
    from ade.process.compose import is_sqlite
    from ade.process.serve import work

    if is_sqlite(settings):
        typer.echo(
            "ade: a separate worker needs a database that several processes can write to."
            " SQLite has one owner: `ade serve` runs the jobs itself"
            " (ADE_MAX_CONCURRENCY says how many). Set ADE_DATABASE_URL=postgresql://...,"
            " or work for a server with --server.",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
    return lambda: work(settings, _say_ready, pilot)


def _remotely(
    settings: Settings,
    server: str,
    key_file: Path | None,
    name: str | None,
    kinds: str,
    pilot: Pilot,
) -> Main:
    from ade.domain.errors import AdeError
    from ade.process.remote_worker import ServerAccess, chosen_kinds, read_key, work_remotely

    if not server.startswith(("http://", "https://")):
        raise typer.BadParameter("it must begin with http:// or https://", param_hint="--server")
    if key_file is None:
        raise typer.BadParameter("it is missing", param_hint="--key-file")
    try:
        access = ServerAccess(server, read_key(key_file), name)
        chosen = chosen_kinds([kind for kind in kinds.split(",") if kind])
    except AdeError as refused:
        typer.echo(f"ade: {refused.detail}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    return lambda: work_remotely(settings, access, _say_ready, kinds=chosen, pilot=pilot)


def _say_ready(name: str) -> None:
    typer.echo(f"worker {name} is ready")
