"""The command line's own words: version, help, exit codes, errors in one line."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ade import __version__
from ade.cli import app
from ade.cli.event_loop import run
from ade.cli.exit_codes import ExitCode
from ade.domain.errors import Unavailable
from ade.http.client_address import is_loopback
from ade.process.serve import link
from ade.settings import Settings


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"ade {__version__}\n")


def test_without_a_command_there_is_help() -> None:
    result = CliRunner().invoke(app, [])
    for command in ("serve", "worker", "demo", "settings"):
        assert command in result.output


@pytest.mark.parametrize("words", [["no-such-command"], ["serve", "--port", "70000"]])
def test_wrong_usage_has_its_exit_code(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == ExitCode.USAGE


def test_the_exit_codes_are_a_contract() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "JOB_FAILED": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "AUTH": 4,
        "UNAVAILABLE": 5,
        "WAIT_TIMED_OUT": 124,
        "INTERRUPTED": 130,
    }


def test_an_expected_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def refuse() -> None:
        raise Unavailable("The database is asleep.")

    with pytest.raises(typer.Exit) as ended:
        run(refuse)
    assert ended.value.exit_code == ExitCode.UNAVAILABLE
    assert capsys.readouterr().err == "ade: The database is asleep.\n"


def test_a_key_pressed_to_end_is_no_error() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        run(interrupted)
    assert ended.value.exit_code == ExitCode.OK


def test_an_unexpected_error_is_not_hidden() -> None:
    async def break_down() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(break_down)


@pytest.mark.parametrize(
    ("host", "only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_distinguished_from_other_addresses(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here


def test_the_link_lets_in_only_with_a_key(tmp_path: Path) -> None:
    settings = Settings(storage_data_dir=tmp_path)
    assert link(settings, 8000, None) == "http://127.0.0.1:8000/"
    assert link(settings, 8000, "ade_x") == "http://127.0.0.1:8000/?token=ade_x"
    six = Settings(storage_data_dir=tmp_path, host="::1")
    assert link(six, 1, None) == "http://[::1]:1/"
    public = Settings(storage_data_dir=tmp_path, public_url="https://ade.example/")
    assert link(public, 1, "adel_x") == "https://ade.example/?token=adel_x"
