"""``ade settings`` and what every command shares: version, exit codes, a fast start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ade import __version__
from ade.cli import app
from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_markdown
from ade.settings import all_settings

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run ``ade`` in an empty folder and its own environment."""
    monkeypatch.chdir(tmp_path)
    for variable in {
        name for setting in all_settings() for name in setting.variables
    } & os.environ.keys():
        monkeypatch.delenv(variable)

    def run(*arguments: str, **environ: str):
        return CliRunner().invoke(app, arguments, env=environ)

    return run


def test_version(run) -> None:
    assert run("--version").output == f"ade {__version__}\n"


def test_table_names_value_and_origin(run) -> None:
    output = run("settings", ADE_QUEUE_MAX_SIZE="77", COLUMNS="200").output
    row = next(line for line in output.splitlines() if line.startswith("ADE_QUEUE_SIZE "))
    assert "77" in row
    assert "environment ADE_QUEUE_MAX_SIZE" in row
    assert all(setting.variable in output for setting in all_settings())


def test_json_keeps_types_and_hides_secrets(run) -> None:
    output = run(
        "settings", "--json", ADE_PORT="81", ADE_BOOTSTRAP_API_KEY="hunter2-and-more"
    ).output
    values = {row["name"]: row["value"] for row in json.loads(output)}
    assert list(values) == [setting.name for setting in all_settings()]
    assert values["port"] == 81
    assert values["safe_mode"] is False
    assert values["wheelhouse"] is None
    assert values["available_hosts"] == []
    assert values["bootstrap_api_key"] == "********"
    assert "hunter2" not in output


def test_value_in_brackets_is_printed_as_it_is(run) -> None:
    assert "[bold]" in run("settings", ADE_WHEELHOUSE="[bold]").output


def test_no_color_is_honoured(run) -> None:
    shown = run("settings", FORCE_COLOR="1", NO_COLOR="1").output
    assert "\x1b[3" not in shown


def test_bad_value_is_one_line_on_stderr(run) -> None:
    result = run("settings", ADE_PORT="many")
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr == (
        "ade: ADE_PORT='many' is not allowed: give a whole number from 0 to 65535\n"
    )


def test_unknown_variable_is_warned_of_on_stderr(run) -> None:
    result = run("settings", "--json", ADE_PROT="1")
    assert result.exit_code == ExitCode.OK
    assert "did you mean ADE_PORT?" in result.stderr
    assert json.loads(result.stdout)


def test_two_formats_are_a_usage_error(run) -> None:
    assert run("settings", "--json", "--markdown").exit_code == ExitCode.USAGE


def test_reference_page_is_what_the_command_prints(run) -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    assert page == settings_markdown(all_settings()), (
        "run: .venv/bin/ade settings --markdown > docs/reference/settings.md"
    )
    assert run("settings", "--markdown", ADE_PORT="many").output == page


def test_start_imports_nothing_heavy() -> None:
    heavy = {"sqlalchemy", "fastapi", "pydantic", "uvicorn", "psycopg", "httpx"}
    program = f"import sys, ade.cli; print(sorted({heavy!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
