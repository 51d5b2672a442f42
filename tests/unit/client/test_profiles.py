"""Which server is called, and with which key."""

from pathlib import Path

import pytest

from ade.client.errors import ConnectionNotConfigured
from ade.client.profiles import (
    Connection,
    Profile,
    checked_url,
    connection,
    profiles_file,
    read_profiles,
    write_profiles,
)
from ade.settings_reader import CLIENT_VARIABLES

HERE = Profile("http://here:1", "key-here", "w-here")
THERE = Profile("http://there:2", "key-there", "w-there")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Keep two profiles."""
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    write_profiles({"default": HERE, "there": THERE}, environ)
    return environ


@pytest.mark.parametrize(
    ("given", "variables", "found"),
    [
        ({}, {}, Connection("http://here:1", "key-here", "w-here")),
        ({"profile": "there"}, {}, Connection("http://there:2", "key-there", "w-there")),
        ({}, {"ADE_PROFILE": "there"}, Connection("http://there:2", "key-there", "w-there")),
        ({"workspace": "w"}, {}, Connection("http://here:1", "key-here", "w")),
        ({}, {"ADE_WORKSPACE": "v"}, Connection("http://here:1", "key-here", "v")),
        ({"workspace": "w"}, {"ADE_WORKSPACE": "v"}, Connection("http://here:1", "key-here", "w")),
        ({"url": "http://x", "api_key": "k"}, {}, Connection("http://x", "k", "default")),
        (
            {},
            {"ADE_URL": "http://x/", "ADE_API_KEY": "k"},
            Connection("http://x", "k", "default"),
        ),
        ({"api_key": "k"}, {}, Connection("http://here:1", "k", "w-here")),
        ({"url": "http://here:1/"}, {}, Connection("http://here:1", "key-here", "w-here")),
    ],
)
def test_an_argument_wins_over_a_variable_and_that_over_the_profile(
    home: dict[str, str], given: dict[str, str], variables: dict[str, str], found: Connection
) -> None:
    assert connection(**given, environ={**home, **variables}) == found


def test_a_key_goes_to_the_server_of_its_profile_only(home: dict[str, str]) -> None:
    for environ in ({"ADE_URL": "http://elsewhere"}, {"ADE_URL": "https://here:1"}):
        with pytest.raises(ConnectionNotConfigured, match="no key"):
            connection(environ={**home, **environ})


def test_what_is_missing_is_said(home: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConnectionNotConfigured, match="default, there"):
        connection(profile="nowhere", environ=home)
    with pytest.raises(ConnectionNotConfigured, match="ade login URL"):
        connection(environ={"XDG_CONFIG_HOME": str(tmp_path / "empty")})


def test_the_file_is_readable_by_its_user_only(home: dict[str, str]) -> None:
    file = profiles_file(home)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert read_profiles(home) == {"default": HERE, "there": THERE}


@pytest.mark.parametrize("content", ["{", "[]", '{"profiles": {"a": {}}}', '{"profiles": 3}'])
def test_a_damaged_file_is_said(home: dict[str, str], content: str) -> None:
    profiles_file(home).write_text(content)
    with pytest.raises(ConnectionNotConfigured, match="damaged"):
        read_profiles(home)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://ade.example/", "https://ade.example"),
        ("http://ade.example/below/", "http://ade.example/below"),
    ],
)
def test_addresses(given: str, meant: str) -> None:
    assert checked_url(given) == meant


@pytest.mark.parametrize(
    "wrong",
    ["", "ftp://x", "http://", "http://x:99999", "http://x?y=1", "http://u:p@x", "http://[x"],
)
def test_what_is_no_address(wrong: str) -> None:
    with pytest.raises(ConnectionNotConfigured):
        checked_url(wrong)


def test_a_key_is_not_shown() -> None:
    assert "key-here" not in repr(HERE)
    assert "key-here" not in repr(Connection("http://x", "key-here", "w"))


def test_the_settings_of_the_server_know_the_variables_of_clients() -> None:
    from ade.client import profiles

    named = {value for name, value in vars(profiles).items() if name.endswith("_VARIABLE")}
    assert named == CLIENT_VARIABLES
