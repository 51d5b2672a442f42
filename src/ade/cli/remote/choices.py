"""The options that every command that calls a server has: which server, and JSON or not.

They may stand before or after a subcommand: what is given last counts.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

_KEY = "ade.choices"
_chosen: ContextVar[MutableMapping[str, Any]] = ContextVar("chosen")


@dataclass(frozen=True)
class Choices:
    """What was chosen on the command line."""

    profile: str | None = None
    workspace: str | None = None
    as_json: bool = False


def choices() -> Choices:
    """Return what was chosen for the command that runs."""
    return Choices(**_chosen.get({}))


def add_choices(command: Any) -> None:
    """Give a command, and those below it, the shared options."""
    taken = {param.name for param in command.params}
    command.params.extend(param for param in _shared() if param.name not in taken)
    for below in getattr(command, "commands", {}).values():
        add_choices(below)


def _note(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    # The meta of a context is shared by those below it, and new for each call of `ade`.
    kept = ctx.meta.setdefault(_KEY, {})
    _chosen.set(kept)
    if value and param.name is not None:
        kept[param.name] = value
    return value


def _profiles(incomplete: str) -> list[str]:
    from ade.client.profiles import read_profiles

    return [name for name in read_profiles() if name.startswith(incomplete)]


def _options(
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A profile of `ade login`; else ADE_PROFILE.",
            callback=_note,
            expose_value=False,
            autocompletion=_profiles,
        ),
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace",
            "-w",
            metavar="SLUG",
            help="Instead of the workspace of the profile; else ADE_WORKSPACE.",
            callback=_note,
            expose_value=False,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON.", callback=_note, expose_value=False),
    ] = False,
) -> None:
    """Declare the options; nothing is run."""


@cache
def _shared() -> list[Any]:
    declared = typer.Typer(add_completion=False, rich_markup_mode=None)
    declared.command()(_options)
    return list(get_command(declared).params)
