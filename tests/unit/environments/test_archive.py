"""Environments as archives: what one host installed, others unpack; what is wrong is refused."""

import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from isal import igzip
from tests.unit.environments.conftest import Configure, Workbench

from ade.environments import archive as module
from ade.environments.archive import ArchiveRefused, Recipe, pack, read_recipe, unpack
from ade.environments.environment import PACKAGES, STAMP, environment_of, folder_of, is_there
from ade.environments.install import LOCK, UNFINISHED, workshop
from ade.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def other(configure: Configure, tmp_path: Path) -> Settings:
    """Make the settings of another host."""
    return configure(storage_data_dir=tmp_path / "other")


@pytest.fixture
async def packed(workbench: Workbench, tmp_path: Path) -> tuple[Path, Recipe]:
    """Install an environment and pack it."""
    digest = await workbench.install("polite")
    file = tmp_path / "packed"
    pack(digest, file, workbench.settings)
    return file, read_recipe(digest, workbench.settings)[0]


async def unpacked(file: Path, recipe: Recipe, settings: Settings) -> Path:
    """Unpack on another host."""
    async with workshop(settings) as folder:
        unpack(file, recipe, folder, settings)
    return folder_of(recipe.environment, settings)


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file of an environment but its stamp."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != STAMP)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


async def test_what_is_unpacked_is_what_was_packed(
    packed: tuple[Path, Recipe], settings: Settings, other: Settings
) -> None:
    file, recipe = packed
    folder = await unpacked(file, recipe, other)
    original = folder_of(recipe.environment, settings)
    assert contents(folder) == contents(original)
    stamp = json.loads((folder / STAMP).read_text())
    assert stamp["packages"] == ["greeting==2.0", "polite==1.0"]
    assert stamp["made"] != json.loads((original / STAMP).read_text())["made"]
    assert environment_of(recipe.environment, other).key.startswith(recipe.environment)
    assert read_recipe(recipe.environment, other)[0] == recipe  # it can be packed again
    assert not list((other.activation_envs_dir / UNFINISHED).iterdir())


async def test_bytecode_is_still_good(packed: tuple[Path, Recipe], other: Settings) -> None:
    """Bytecode names the date of its source, and is of no use beside another date."""
    folder = await unpacked(*packed, other)
    source = folder / PACKAGES / "greeting.py"
    compiled = source.parent / "__pycache__" / f"greeting.{sys.implementation.cache_tag}.pyc"
    dated = int.from_bytes(compiled.read_bytes()[8:12], "little")
    assert dated == int(source.stat().st_mtime)


Change = Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]


def changed(file: Path, change: Change, to: Path) -> Path:
    """Write an archive anew with a change."""
    entries = []
    with igzip.open(file, "rb") as source, tarfile.open(fileobj=source, mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member)
            entries.append((member, content.read() if content else b""))
    change(entries)
    with (
        igzip.open(to, "wb") as target,
        tarfile.open(fileobj=target, mode="w|", format=tarfile.GNU_FORMAT) as written,
    ):
        for member, data in entries:
            if member.size >= 0:
                member.size = len(data)
            written.addfile(member, io.BytesIO(data) if data else None)
    return to


def entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """Make an entry of an archive."""
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made, content


WRONG: dict[str, tuple[Change, str]] = {
    "a path above": (lambda e: e.append(entry("packages/../../x", b"x")), "does not belong"),
    "an absolute path": (lambda e: e.append(entry("/etc/x", b"x")), "does not belong"),
    "a file beside": (lambda e: e.append(entry("x", b"x")), "does not belong"),
    "a symbolic link": (
        lambda e: e.append(entry("packages/x", type=tarfile.SYMTYPE, linkname="/etc")),
        "a link",
    ),
    "a hard link": (
        lambda e: e.append(entry("packages/x", type=tarfile.LNKTYPE, linkname=LOCK)),
        "a link",
    ),
    "a device": (lambda e: e.append(entry("packages/x", type=tarfile.CHRTYPE)), "a link"),
    "a file twice": (lambda e: e.append(e[-1]), "damaged"),
    "another lock": (lambda e: e.__setitem__(1, (e[1][0], b"evil==1\n")), "another lock"),
    "no packages": (lambda e: e.__delitem__(slice(2, None)), "no packages"),
    "no lock": (lambda e: e.__delitem__(1), "damaged"),
    "a shadow of the engine": (
        lambda e: e.append(entry("packages/ade_engine/__init__.py", b"")),
        "damaged",
    ),
    "a large file": (lambda e: e.append(entry("packages/x", bytes(12 << 20))), "larger than"),
    "a negative size that makes room": (
        lambda e: e.extend(
            [
                entry("packages/x", type=tarfile.DIRTYPE, size=-(1 << 60)),
                entry("packages/x/y", bytes(12 << 20)),
            ]
        ),
        "negative",
    ),
    "a date beyond all dates": (lambda e: e.append(entry("packages/x", mtime=1 << 70)), "damaged"),
    "headers within headers": (
        lambda e: e.extend([entry("x", b"packages/x", type=tarfile.GNUTYPE_LONGNAME)] * 3000),
        "damaged",
    ),
    "a long header": (lambda e: e.append(entry(f"packages/{'x' * 70_000}", b"")), "header"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_leaves_nothing(
    what: str, packed: tuple[Path, Recipe], other: Settings, tmp_path: Path
) -> None:
    change, words = WRONG[what]
    file, recipe = packed
    small = other.model_copy(update={"environment_max_mb": 1})
    with pytest.raises(ArchiveRefused, match=words):
        await unpacked(changed(file, change, tmp_path / "changed"), recipe, small)
    assert not is_there(recipe.environment, other)
    assert not (tmp_path / "x").exists()


async def test_more_files_than_allowed_are_refused(
    packed: tuple[Path, Recipe], other: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILES_MAX", 3)
    with pytest.raises(ArchiveRefused, match="larger than"):
        await unpacked(*packed, other)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
async def test_half_an_archive_is_none(
    kept: float, packed: tuple[Path, Recipe], other: Settings
) -> None:
    file, recipe = packed
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(ArchiveRefused, match="damaged"):
        await unpacked(file, recipe, other)
    assert not is_there(recipe.environment, other)


async def test_links_are_not_packed(workbench: Workbench, tmp_path: Path) -> None:
    digest = await workbench.install("greeting")
    folder = folder_of(digest, workbench.settings)
    (folder / PACKAGES / "away").symlink_to(tmp_path)
    with pytest.raises(ArchiveRefused, match="a link"):
        pack(digest, tmp_path / "packed", workbench.settings)
