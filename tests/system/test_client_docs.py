"""The pages on the command line and on the Python client, run as they are against a server."""

import os
import re
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.system.command_line import END_SECONDS, CommandLine, command_line
from tests.system.server import ADE

from ade.testing.server import AdeServer

ROOT = Path(__file__).parents[2]
COMMAND_LINE = "docs/how-to/use-the-command-line.md"
PYTHON = "docs/how-to/call-ade-from-python.md"
ADDRESS, KEY = "http://127.0.0.1:8000", "ade_..."


@pytest.fixture
def ade(tmp_path: Path) -> CommandLine:
    """Give the reader a folder and a home."""
    return command_line(tmp_path)


@pytest.fixture
def workspace(ade_server: AdeServer) -> str:
    """Make a workspace, so that names of the pages are free."""
    slug = f"docs-{secrets.token_hex(4)}"
    made = ade_server.client.post("/api/v1/workspaces", json={"slug": slug, "name": slug})
    assert made.status_code == 201, made.text
    return slug


def _blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _run(
    blocks: list[str], ade: CommandLine, server: AdeServer, workspace: str
) -> "subprocess.CompletedProcess[str]":
    """Run commands one after the other, as somebody would who types them."""
    script = "\n".join(blocks).replace(ADDRESS, server.url)
    login = f"echo {server.key} | ade login"
    path = f"{Path(ADE).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("ade login", login, 1)],
        env={**os.environ, **ade.environ, "ADE_WORKSPACE": workspace, "PATH": path},
        cwd=ade.folder,
        capture_output=True,
        text=True,
        timeout=END_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def test_the_commands_do_what_the_page_says(
    ade: CommandLine, ade_server: AdeServer, workspace: str
) -> None:
    blocks = _blocks(COMMAND_LINE, "sh")
    assert len(blocks) >= 7
    ended = _run(blocks, ade, ade_server, workspace)
    assert "\n42\n" in ended.stdout
    assert "they differ" in ended.stdout
    assert Path(ade.folder, "results", "roster.normalized.xlsx").is_file()


def test_the_first_page_does_what_it_says(
    ade: CommandLine, ade_server: AdeServer, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [one for one in _blocks("README.md", "sh") if "ade login" in one]
    (program,) = [one for one in _blocks("README.md", "python") if "ade.client" in one]
    ended = _run(commands, ade, ade_server, workspace)
    assert "\n42\n" in ended.stdout
    assert Path(ade.folder, "roster.normalized.xlsx").is_file()
    for name, value in (*ade.environ.items(), ("ADE_WORKSPACE", workspace)):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ade.folder)
    exec(program, {})
    assert Path("members.xlsx").is_file()


def test_the_client_does_what_the_page_says(
    ade_server: AdeServer, workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_WORKSPACE", workspace)
    names: dict[str, Any] = {}
    blocks = _blocks(PYTHON, "python")
    assert len(blocks) >= 8
    for block in blocks:
        exec(block.replace(ADDRESS, ade_server.url).replace(KEY, ade_server.key), names)
    names["client"].close()
    assert Path("members.xlsx").stat().st_size > 1000
    assert Path("copy.csv").read_bytes() == b"a,b\n1,2\n"
