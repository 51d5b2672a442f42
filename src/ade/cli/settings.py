"""``ade settings``: print every setting, its value and where the value came from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from ade.settings import Settings
    from ade.settings_reader import Setting

PIPE_WIDTH_COLUMNS = 160

MARKDOWN_HEAD = """\
# Settings

<!-- Written by `ade settings --markdown`; edit src/ade/settings.py instead. -->

Every setting of ADE. A value comes from the environment, else from `.env` in the working directory,
else from the default. An empty variable counts as not set. Two names of one setting may not hold
different values in the same place. `ade settings` prints the values in use and the origin of each.

A variable whose value is not allowed stops the start with one line that names it. A variable that
begins with `ADE_` and is not listed here is only warned of (`ADE_TEST_*` belongs to the tests).
`ADE_URL`, `ADE_API_KEY`, `ADE_WORKSPACE` and `ADE_PROFILE` are read by
[commands that call a server](cli.md).

Three settings depend on each other: `ADE_LEASE_MARGIN_SECONDS` must be less than
`ADE_LEASE_SECONDS`, and `ADE_RENEW_SECONDS` less than their difference.
"""


def settings_or_exit(env_file: Path | None = None) -> Settings:
    """Load the settings; say warnings on stderr, and end with one line if they cannot be used."""
    from ade.settings import SettingsError, load_settings

    try:
        settings = load_settings(dotenv=env_file)
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
    from ade.settings import all_settings

    if as_json and markdown:
        raise typer.BadParameter("choose one of --json and --markdown")
    if markdown:
        typer.echo(settings_markdown(all_settings()), nl=False)
        return
    settings = settings_or_exit()
    if as_json:
        rows = [_row(setting, settings) for setting in all_settings()]
        typer.echo(json.dumps(rows, indent=2))
    else:
        _print_table(settings, all_settings())


def _row(setting: Setting, settings: Settings) -> dict[str, Any]:
    return {
        "name": setting.name,
        "variable": setting.variable,
        "aliases": list(setting.aliases),
        "value": _json_value(setting, getattr(settings, setting.name)),
        "unit": setting.unit,
        "default": setting.default,
        "allowed": setting.allowed,
        "origin": settings.origin(setting.name),
        "description": setting.description,
    }


def _json_value(setting: Setting, value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return list(value) if isinstance(value, tuple) else setting.show(value)


def _print_table(settings: Settings, declared: Iterable[Setting]) -> None:
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
    for setting in declared:
        origin = settings.origin(setting.name)
        value = setting.show(getattr(settings, setting.name))
        cells = (setting.variable, value, setting.unit, origin, setting.description)
        # Text, not str: a value in brackets is not markup.
        table.add_row(*map(Text, cells), style="dim" if origin == "default" else "bold")
    console.print(table)


def settings_markdown(declared: Iterable[Setting]) -> str:
    """Write the reference page of all settings."""
    lines = [
        MARKDOWN_HEAD,
        "| variable | default | unit | allowed | what it does |",
        "| --- | --- | --- | --- | --- |",
    ]
    for setting in declared:
        names = " or ".join(f"`{variable}`" for variable in setting.variables)
        default = f"`{setting.default}`" if setting.default else "*(unset)*"
        cells = (names, default, setting.unit, setting.allowed, setting.description)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
