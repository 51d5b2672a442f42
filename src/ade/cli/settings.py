"""``ade settings``: print every knob, its value and where the value came from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from ade.knobs import Knob
    from ade.settings import Settings

PIPE_WIDTH_COLUMNS = 160

MARKDOWN_HEAD = """\
# Settings

<!-- Written by `ade settings --markdown`; edit src/ade/settings.py instead. -->

Every knob of ADE. A value comes from the environment, else from `.env` in the working directory,
else from the default. An empty variable counts as not set. Two names of one knob may not hold
different values in the same place. `ade settings` prints the values in use and the origin of each.

A variable whose value is not allowed stops the start with one line that names it. A variable that
begins with `ADE_` and is not listed here is only warned of (`ADE_TEST_*` belongs to the tests).

Three settings depend on each other: `ADE_LEASE_MARGIN_SECONDS` must be less than
`ADE_LEASE_SECONDS`, and `ADE_RENEW_SECONDS` less than their difference.
"""


def settings_or_exit() -> Settings:
    """Load the settings; say warnings on stderr, and end with one line if they cannot be used."""
    from ade.settings import SettingsError, load_settings

    try:
        settings = load_settings()
    except SettingsError as refused:
        typer.echo(f"ade: {refused}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    for warning in settings.warnings:
        typer.echo(f"ade: warning: {warning}", err=True)
    return settings


def print_settings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page: defaults, not values.")
    ] = False,
) -> None:
    """Print every setting, its value and where the value came from."""
    from ade.settings import settings_knobs

    if as_json and markdown:
        raise typer.BadParameter("choose one of --json and --markdown")
    if markdown:
        typer.echo(settings_markdown(settings_knobs()), nl=False)
        return
    settings = settings_or_exit()
    if as_json:
        rows = [_row(knob, settings) for knob in settings_knobs()]
        typer.echo(json.dumps(rows, indent=2))
    else:
        _print_table(settings, settings_knobs())


def _row(knob: Knob, settings: Settings) -> dict[str, Any]:
    return {
        "name": knob.name,
        "variable": knob.variable,
        "aliases": list(knob.aliases),
        "value": _json_value(knob, getattr(settings, knob.name)),
        "unit": knob.unit,
        "default": knob.default,
        "allowed": knob.allowed,
        "origin": settings.origin(knob.name),
        "description": knob.description,
    }


def _json_value(knob: Knob, value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return list(value) if isinstance(value, tuple) else knob.show(value)


def _print_table(settings: Settings, knobs: Iterable[Knob]) -> None:
    import os

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=PIPE_WIDTH_COLUMNS)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("setting", no_wrap=True)
    for column in ("value", "unit", "origin", "description"):
        table.add_column(column, overflow="fold")
    for knob in knobs:
        origin = settings.origin(knob.name)
        value = knob.show(getattr(settings, knob.name))
        cells = (knob.variable, value, knob.unit, origin, knob.description)
        # Text, not str: a value in brackets is not markup.
        table.add_row(*map(Text, cells), style="dim" if origin == "default" else "bold")
    console.print(table)


def settings_markdown(knobs: Iterable[Knob]) -> str:
    """Write the reference page of all settings."""
    lines = [
        MARKDOWN_HEAD,
        "| variable | default | unit | allowed | what it does |",
        "| --- | --- | --- | --- | --- |",
    ]
    for knob in knobs:
        names = " or ".join(f"`{variable}`" for variable in knob.variables)
        default = f"`{knob.default}`" if knob.default else "*(unset)*"
        cells = (names, default, knob.unit, knob.allowed, knob.description)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
