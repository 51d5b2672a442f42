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

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
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
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_commands_do_what_the_page_says(
    ade: CommandLine, ade_server: AdeServer, workspace: str
) -> None:
    blocks = _blocks("use-the-command-line.md", "sh")
    assert len(blocks) >= 7
    script = "\n".join(blocks).replace(ADDRESS, ade_server.url)
    login = f"echo {ade_server.key} | ade login"
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
    assert "\n42\n" in ended.stdout
    assert "they differ" in ended.stdout
    assert Path(ade.folder, "results", "roster.normalized.xlsx").is_file()


def test_the_client_does_what_the_page_says(
    ade_server: AdeServer, workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADE_WORKSPACE", workspace)
    names: dict[str, Any] = {}
    blocks = _blocks("call-ade-from-python.md", "python")
    assert len(blocks) >= 8
    for block in blocks:
        exec(block.replace(ADDRESS, ade_server.url).replace(KEY, ade_server.key), names)
    names["client"].close()
    assert Path("members.xlsx").stat().st_size > 1000
    assert Path("copy.csv").read_bytes() == b"a,b\n1,2\n"
