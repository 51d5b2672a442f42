"""`ade-client` as a user has it: its wheel and what it needs, and nothing else."""

import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from ade.cli.exit_codes import ExitCode
from ade.testing.server import AdeServer

PACKAGE = Path(__file__).parents[2] / "packages" / "ade-client"
SIZE_BYTES_MAX = 15_000_000
END_SECONDS = 120.0
CALL = """
import sys
from ade import Client
from ade.client import AsyncClient, errors
with Client() as client:
    print(client.cells.run("def main(a, b): return a * b", a=6, b=7).value)
print(sorted({"typer", "rich", "pydantic", "sqlalchemy", "ade.domain"} & sys.modules.keys()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


def _needed(*names: str) -> dict[str, Distribution]:
    """Find what is installed with some distributions, themselves included."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower()
        if name in found:
            continue
        found[name] = distribution(name)
        for line in found[name].requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                waiting.append(wanted.name)
    return found


def _install(wheel: Path, folder: Path, *names: str) -> int:
    """Lay out the wheel and what it needs in a folder; return the size of all of it in bytes."""
    folder.mkdir()
    with ZipFile(wheel) as packed:
        packed.extractall(folder)
        size = sum(entry.file_size for entry in packed.infolist())
    for found in _needed(*names).values():
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if file.parts[0] == ".." or file.suffix == ".pyc" or not path.is_file():
                continue
            size += path.stat().st_size
            top = folder / file.parts[0]
            if not top.exists():
                top.symlink_to(Path(str(found.locate_file(file.parts[0]))))
    return size


def _python(installed: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run Python without any other installed package."""
    return subprocess.run(
        [sys.executable, "-S", *words],
        env={"PYTHONPATH": str(installed), "HOME": str(installed.parent), **environ},
        cwd=installed.parent,
        capture_output=True,
        text=True,
        timeout=END_SECONDS,
    )


def test_the_library_is_small_and_works_alone(
    wheel: Path, tmp_path: Path, ade_server: AdeServer
) -> None:
    installed = tmp_path / "installed"
    size = _install(wheel, installed, "httpx")
    assert size < SIZE_BYTES_MAX, f"{size / 1e6:.1f} MB"
    ran = _python(installed, "-c", CALL, ADE_URL=ade_server.url, ADE_API_KEY=ade_server.key)
    assert (ran.returncode, ran.stdout) == (0, "42\n[]\n"), ran.stderr
    refused = _python(installed, "-m", "ade", "jobs")
    assert refused.returncode == ExitCode.USAGE
    assert refused.stderr == "ade: commands need more: pip install 'ade-client[cli]'\n"


def test_the_commands_work_without_the_server(
    wheel: Path, tmp_path: Path, ade_server: AdeServer
) -> None:
    installed = tmp_path / "installed"
    _install(wheel, installed, "httpx", "typer", "rich")
    environ = {"ADE_URL": ade_server.url, "ADE_API_KEY": ade_server.key}
    words = ("jobs", "submit", "echo", "-i", "value=1", "--wait", "--json")
    ran = _python(installed, "-m", "ade", *words, **environ)
    assert ran.returncode == 0, ran.stderr
    assert '"status": "succeeded"' in ran.stdout
    offered = _python(installed, "-m", "ade", "--help").stdout
    assert "\n  submit " in offered
    assert "\n  serve " not in offered
    refused = _python(installed, "-m", "ade", "serve")
    assert refused.returncode == ExitCode.USAGE
    assert "install ade itself" in refused.stderr
