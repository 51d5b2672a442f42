"""A folder knows its configuration, and which draft it was last the same as."""

from pathlib import Path

import pytest
import typer

from ade.cli.remote.draft_folder import known_digest, name_for, remember, signature
from ade.client import Client
from ade.client.core.package_files import read_folder
from ade.client.sync.configurations import Configuration


def test_the_name_of_a_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    assert name_for(folder, None) == "rules"
    folder.joinpath("config.toml").write_text('name = "Members"\n')
    assert name_for(folder, None) == "Members"
    assert name_for(folder, "other") == "other"
    folder.joinpath("config.toml").write_text("name = \n")
    with pytest.raises(typer.BadParameter, match=r"config\.toml"):
        name_for(folder, None)


def test_a_folder_remembers_one_draft_of_one_server(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:1", "k") as here, Client("http://127.0.0.1:2", "k") as there:
        one, other = (Configuration(id=name, session=here._session) for name in "ab")
        assert known_digest(tmp_path, here, one) is None
        remember(tmp_path, here, one, "sha256:1")
        assert known_digest(tmp_path, here, one) == "sha256:1"
        assert known_digest(tmp_path, here, other) is None
        assert known_digest(tmp_path, there, one) is None
        tmp_path.joinpath(".ade", "draft.json").write_text("{")
        assert known_digest(tmp_path, here, one) is None


def test_what_is_remembered_is_no_part_of_the_package(tmp_path: Path) -> None:
    tmp_path.joinpath("config.toml").write_text("")
    before = signature(tmp_path)
    with Client("http://127.0.0.1:1", "k") as client:
        remember(tmp_path, client, Configuration(id="a", session=client._session), "sha256:1")
    assert list(read_folder(tmp_path)) == ["config.toml"]
    assert signature(tmp_path) == before
    tmp_path.joinpath("config.toml").write_text("x = 1")
    assert signature(tmp_path) != before
