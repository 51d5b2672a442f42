"""The table of commands says what the commands say, and nothing is imported for it."""

import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from ade.cli import app
from ade.cli.command_table import COMMANDS, CONFIG
from ade.cli.exit_codes import ExitCode
from ade.cli.lazy_commands import Lazy, lazy_group

ENTRIES = [
    pytest.param(path, name, lazy, id=f"{'-'.join(path)}-{name}")
    for path, sections in (((), COMMANDS), (("config",), CONFIG))
    for table in sections.values()
    for name, lazy in table.items()
]


@pytest.mark.parametrize(("path", "name", "lazy"), ENTRIES)
def test_a_line_of_help_is_what_the_command_says(
    path: tuple[str, ...], name: str, lazy: Lazy
) -> None:
    group: Any = get_command(app)
    for step in path:
        group = group.commands[step]
    said = " ".join(group.commands[name].help.partition("\n\n")[0].split())
    assert said.startswith(lazy.help.rstrip("."))


def test_help_and_version_import_no_command() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from ade.cli import app;"
        "CliRunner().invoke(app, ['--help']);"
        "print(sorted(m for m in sys.modules if m.startswith(('ade.cli.', 'rich', 'httpx'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    names = ("command_table", "exit_codes", "lazy_commands", "remote")
    expected = [f"ade.cli.{name}" for name in names]
    assert done.stdout.strip() == str(expected), done.stderr


def test_commands_have_headings() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert shown.index("On this machine:") < shown.index("On a server:") < shown.index("Operate:")


def test_a_command_that_is_not_installed_says_so() -> None:
    table = {"Here": {"there": Lazy("ade.cli.no_such_module:run", "Run.")}}
    other = typer.Typer(cls=lazy_group(table), rich_markup_mode=None)
    other.callback()(lambda: None)
    asked = CliRunner().invoke(other, ["there"])
    assert asked.exit_code == ExitCode.USAGE
    assert "install ade itself" in asked.stderr
    assert "there" not in CliRunner().invoke(other, ["--help"]).stdout


def test_commands_may_be_added_in_the_ordinary_way() -> None:
    other = typer.Typer(cls=lazy_group({"Here": {}}), rich_markup_mode=None)
    other.callback()(lambda: None)
    other.command("hello", help="Greet.")(lambda: typer.echo("hello"))
    assert "hello" in CliRunner().invoke(other, ["--help"]).stdout
    assert CliRunner().invoke(other, ["hello"]).stdout == "hello\n"


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    asked = CliRunner().invoke(app, ["documnts"])
    assert asked.exit_code == ExitCode.USAGE
    assert "documents" in asked.stderr
