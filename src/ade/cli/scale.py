"""``ade scale``: keep as many pilots on an engine as the waiting work needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from rich.console import Console

    from ade.agents.scale_config import ScaleConfig
    from ade.app.scaler_report import BlockReport, ScalerReport

app = typer.Typer(
    help="Start workers on Slurm or another engine while work waits.", invoke_without_command=True
)
EnvFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Read settings from it instead of .env."),
]
COLOURS = {"ended": "dim", "failed": "red", "cancelled": "dim", "running": "green"}
PIPE_WIDTH_COLUMNS = 160


@app.callback()
def scale(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The TOML file; `ade scale init` writes one."),
    ] = None,
    env_file: EnvFile = None,
) -> None:
    """Start pilots (workers that leave by themselves) on an engine while jobs wait for them."""
    if context.invoked_subcommand is not None:
        return
    if config is None:
        raise typer.BadParameter(
            "it is missing; `ade scale init slurm > scale.toml` writes an example",
            param_hint="--config",
        )
    from ade.process.compose import is_sqlite
    from ade.process.scale import scale as keep_scaling
    from ade.telemetry.log_setup import set_up_logs

    settings = settings_or_exit(env_file)
    read = _config(config)
    if is_sqlite(settings):
        typer.echo(
            "ade: pilots are processes of their own, and SQLite has one owner:"
            " `ade serve` runs its jobs itself. Set ADE_DATABASE_URL=postgresql://...",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
    set_up_logs(settings.log_format, settings.log_level)
    run(lambda: keep_scaling(settings, read, typer.echo))


def _config(file: Path) -> ScaleConfig:
    """Read the file, or end with one line that says what is wrong with it."""
    from ade.agents.scale_config import read_scale_config
    from ade.settings import SettingsError

    try:
        return read_scale_config(file)
    except SettingsError as refused:
        typer.echo(f"ade: {refused}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None


@app.command("init")
def init(
    engine: Annotated[str, typer.Argument(metavar="ENGINE", help="local, slurm or parsl.")],
) -> None:
    """Print an example of the file for an engine, with every key."""
    from ade.agents.scale_config import ENGINES, example

    if engine not in ENGINES:
        raise typer.BadParameter(f"give one of {', '.join(ENGINES)}", param_hint="ENGINE")
    typer.echo(example(engine), nl=False)


@app.command("drain")
def drain(
    config: Annotated[Path, typer.Option(metavar="FILE", help="The TOML file of the scaler.")],
    env_file: EnvFile = None,
) -> None:
    """Cancel the blocks that wait, and let pilots finish their jobs and leave.

    Stop `ade scale` first: while it decides, it orders new blocks for what waits.
    """
    import asyncio

    from ade.agents.launchers.port import BlockRefused, EngineAway
    from ade.domain.errors import AdeError
    from ade.process.scale import drain as drain_blocks

    settings = settings_or_exit(env_file)
    try:
        waiting, started = asyncio.run(drain_blocks(settings, _config(config)))
    except AdeError as error:
        typer.echo(f"ade: {error.detail}", err=True)
        raise typer.Exit(ExitCode.UNAVAILABLE) from None
    except (EngineAway, BlockRefused) as error:
        typer.echo(f"ade: {error}", err=True)
        raise typer.Exit(ExitCode.UNAVAILABLE) from None
    typer.echo(f"{waiting} waiting blocks were cancelled; {started} pilots were asked to leave.")


@app.command("status")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    env_file: EnvFile = None,
) -> None:
    """Show what each scaler sees, its blocks, and its last decisions with their reasons."""
    from ade.app.scaler_report import report_scalers
    from ade.domain.errors import AdeError
    from ade.store.session import Session

    settings = settings_or_exit(env_file)
    store = None
    try:
        store = Session(settings.database_url)
        scalers = report_scalers(store)
    except AdeError as error:
        typer.echo(f"ade: {error.detail}", err=True)
        raise typer.Exit(ExitCode.UNAVAILABLE) from None
    finally:
        if store is not None:
            store.close()
    if as_json:
        typer.echo(json.dumps({"scalers": [one.as_dict() for one in scalers]}, indent=2))
        return
    if not scalers:
        typer.echo("No scaler has run on this database.")
    console = _console()
    for one in scalers:
        _print(console, one)


def _console() -> Console:
    import os

    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=PIPE_WIDTH_COLUMNS)
    return console


def _print(console: Console, scaler: ScalerReport) -> None:
    from rich.table import Table
    from rich.text import Text

    seen: dict[str, Any] = dict(scaler.signals)
    console.print(Text(f"{scaler.name}: {scaler.where or scaler.engine}", "bold"))
    console.print(Text(f"  {scaler.leader}"))
    if scaler.trouble:
        console.print(Text(f"  {scaler.trouble}", "bold red"))
    if seen:
        too_long = seen.get("too_long")
        console.print(
            Text(
                f"  {seen['waiting']:.0f} waiting, the oldest for {seen['oldest_seconds']:.0f} s;"
                f" {seen['running']:.0f} running, {seen['free_slots']:.0f} slots free"
                + (f"; {too_long:.0f} wait with a timeout too long for a pilot" if too_long else "")
            )
        )
    counts = ", ".join(f"{count} {status}" for status, count in scaler.counts.items()) or "none"
    console.print(Text(f"  blocks: {counts}; at most {scaler.max_blocks} at once"))
    if scaler.blocks:
        table = Table(
            "block", "id", "state", "pilot", "age", "detail", box=None, padding=(0, 2, 0, 0)
        )
        for block in scaler.blocks:
            table.add_row(*_row(block))
        console.print(table)
    for decision in scaler.decisions:
        console.print(Text(f"  {decision.ago} ago: {decision.reason}"))
    console.print()


def _row(block: BlockReport) -> list[Any]:
    from rich.text import Text

    state = Text(block.state, COLOURS.get(block.state, ""))
    return [
        Text(f"  {block.name}"),
        Text(block.id or ""),
        state,
        block.pilot,
        block.age,
        Text(block.detail),
    ]
