"""`ade doctor`: which sandbox layers hold on this machine, which do not, and what to do."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.sandbox.probe import SandboxReport

COLOURS = {"up": "green", "weaker": "yellow", "missing": "red"}
LEVEL_COLOURS = {"full": "green", "landlock": "yellow", "none": "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which sandbox layers hold here; exit 5 if untrusted code would be refused."""
    settings = settings_or_exit()
    from ade.process.data_folder import exposed
    from ade.process.isolation import examine

    report, refusal = asyncio.run(examine(settings))
    if as_json:
        least: dict[str, object] = {"least": settings.sandbox, "refused": refusal is not None}
        least["exposed"] = [str(path) for path, _ in exposed(settings)]
        typer.echo(json.dumps({**report.as_dict(), **least}, indent=2))
    else:
        _print(report, refusal, settings.sandbox)
        for path, mode in exposed(settings):
            typer.echo(
                f"Other users of this machine can reach {path}; the next start of the server"
                f" changes its mode to {mode:o}, if it may."
            )
    if refusal is not None:
        raise typer.Exit(ExitCode.UNAVAILABLE)


def _print(report: "SandboxReport", refusal: str | None, least: str) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    colour = LEVEL_COLOURS[report.level]
    console.print(f"Isolation: [{colour}]{report.level}[/] (least accepted: {least})")
    table = Table("layer", "state", "what it means", box=None, pad_edge=False)
    for layer in report.layers:
        table.add_row(layer.name, f"[{COLOURS[layer.state]}]{layer.state}[/]", layer.detail)
    console.print(table)
    if least == "none":
        console.print("[bold red]ADE_SANDBOX=none: code may run without isolation.[/]")
    if refusal is not None:
        console.print(f"[red]{refusal}[/]")
    elif report.remedy:
        console.print(f"To strengthen it: {report.remedy}")
