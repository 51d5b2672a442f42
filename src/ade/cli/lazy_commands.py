"""Groups whose commands are imported when they are run.

A table says where each command is and what it is for, so that `ade --help` imports none of them,
and so that the thin distribution, which lacks the modules of the server, can say what is missing.
Commands of `ade.cli.remote` also get the options that all of them share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from ade.cli.exit_codes import ExitCode

REMOTE = "ade.cli.remote."


@dataclass(frozen=True)
class Lazy:
    """Where a command is (`module:name`), and its line in the help of its group."""

    where: str
    help: str

    @property
    def module(self) -> str:
        """Return the module that the command is in."""
        return self.where.partition(":")[0]

    def is_installed(self) -> bool:
        """Tell whether this installation has the command."""
        return find_spec(self.module) is not None


# Commands by name, below the heading under which help lists them.
Sections = Mapping[str, Mapping[str, Lazy]]


class LazyGroup(TyperGroup):
    """A group of commands from a table; others may be added in the ordinary way."""

    sections: ClassVar[Sections] = {}

    def __init__(self, *, commands: Any = None, **options: Any) -> None:
        super().__init__(commands={}, **options)
        self.commands = _Commands(self.sections, dict(commands or {}))

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the commands, without importing them."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands below their headings."""
        others = {name: self.commands[name] for name in self.commands if not self._entry(name)}
        listed = {
            heading: [(name, one.help) for name, one in table.items() if one.is_installed()]
            for heading, table in self.sections.items()
        }
        listed["Other commands"] = [
            (name, command.get_short_help_str(formatter.width)) for name, command in others.items()
        ]
        for heading, rows in listed.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _entry(self, name: str) -> Lazy | None:
        return next((table[name] for table in self.sections.values() if name in table), None)


def lazy_group(sections: Sections) -> type[LazyGroup]:
    """Make the class of a group with the commands of a table."""
    return type("Group", (LazyGroup,), {"sections": sections})


class _Commands(MutableMapping[str, Any]):
    """Commands by name: imported when they are read."""

    def __init__(self, sections: Sections, loaded: dict[str, Any]) -> None:
        self._waiting = {
            name: one
            for table in sections.values()
            for name, one in table.items()
            if name not in loaded
        }
        self._names = dict.fromkeys([*self._waiting, *loaded])
        self._loaded = loaded

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._waiting[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._names[name] = None
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _load(name: str, lazy: Lazy) -> Any:
    """Import a command; end with one line if this installation does not have it."""
    if not lazy.is_installed():
        typer.echo(
            f"ade: `ade {name}` is not part of ade-client; install ade itself to use it.", err=True
        )
        raise typer.Exit(ExitCode.USAGE)
    found = getattr(import_module(lazy.module), lazy.where.partition(":")[2])
    if isinstance(found, typer.Typer):
        found.rich_markup_mode = None  # plain help costs a third of the time
        command: Any = get_group(found)
    else:
        alone = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        alone.command(name)(found)
        command = get_command(alone)
    command.name = name
    if lazy.module.startswith(REMOTE):
        from ade.cli.remote.choices import add_choices

        add_choices(command)
    return command
