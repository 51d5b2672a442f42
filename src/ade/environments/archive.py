"""An environment as one file, for hosts that did not install it themselves.

The model. An archive is a gzipped tar: the lock, the stamp, and the packages as plain files and
folders, with the dates that their bytecode goes by. It is a blob, so its bytes are those that were
packed. What is in it is checked all the same: an agent may have packed it.

    what is found                                  what happens
    ---------------------------------------------  ---------------------------------------------
    a link, a device, a path that leads elsewhere  refused
    more files, more bytes, a longer header than   refused before it is read
    allowed
    a lock of another environment                  refused: the environment's digest is made of it
    packages that stand before the engine's own    refused
    no end                                         refused; nothing has a name before the end
"""

import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from isal import igzip

from ade.domain.units import KIB, MIB
from ade.environments.environment import PACKAGES, STAMP, folder_of
from ade.environments.failure import BuildFailed
from ade.environments.install import LOCK, settle
from ade.environments.provided import refuse_shadows
from ade.environments.resolve import environment_digest
from ade.settings import Settings
from ade.store.rows import EnvironmentArchive

FILES_MAX = 200_000
DEPTH_MAX = 40
# The lock and the stamp; and headers that tar adds for long names.
TEXT_BYTES_MAX = 8 * MIB
HEADER_BYTES_MAX = 64 * KIB
FILL_BYTES_MAX = 64 * KIB
COMPRESSION = 1
EXECUTABLE, PLAIN, FOLDER = 0o755, 0o644, 0o755
_BROKEN = (
    tarfile.TarError,
    igzip.BadGzipFile,
    EOFError,
    RecursionError,  # each header for a long name is read within the one before
    zlib.error,
    OverflowError,
    ValueError,
    KeyError,
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)


class ArchiveRefused(Exception):
    """An archive is not what it should be; the message says why, without a path of this host."""


class Recipe(NamedTuple):
    """Hold what an environment is made of; its digest is made of that."""

    environment: str
    lock: str
    interpreter: str
    installer: str
    source_builds: bool

    @property
    def is_right(self) -> bool:
        """Tell whether the digest is that of the rest."""
        made = environment_digest(
            self.lock, self.interpreter, self.installer, source_builds=self.source_builds
        )
        return made == self.environment


def recipe_of(archive: EnvironmentArchive) -> Recipe:
    """Return what an archived environment is made of."""
    return Recipe(
        archive.environment,
        archive.lock,
        archive.interpreter,
        archive.installer,
        bool(archive.source_builds),
    )


def read_recipe(environment: str, settings: Settings) -> tuple[Recipe, int]:
    """Read what an environment on this disk is made of, and the size of its packages in bytes.

    Raises OSError or ValueError if it is not there, or of an earlier version of ADE.
    """
    folder = folder_of(environment, settings)
    stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    lock = (folder / LOCK).read_text(encoding="utf-8")
    for source_builds in (False, True):  # stamps of earlier versions do not say
        recipe = Recipe(
            environment, lock, str(stamp["interpreter"]), str(stamp["uv"]), source_builds
        )
        if recipe.is_right:
            return recipe, int(stamp["size_bytes"])
    raise ValueError("the environment was made from another lock")


# --- pack -----------------------------------------------------------------------------------------


def pack(environment: str, file: Path, settings: Settings) -> None:
    """Write an environment of this disk as an archive."""
    folder = folder_of(environment, settings)
    with (
        igzip.open(file, "wb", compresslevel=COMPRESSION) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in _contents(folder):
            entry = tar.gettarinfo(path, path.relative_to(folder).as_posix())
            if not (entry.isreg() or entry.isdir()):
                raise ArchiveRefused("it holds a link or another entry that is not a regular file")
            if entry.isdir():
                tar.addfile(_plain(entry))
                continue
            with path.open("rb") as content:
                tar.addfile(_plain(entry), content)


def _contents(folder: Path) -> Iterator[Path]:
    yield folder / STAMP
    yield folder / LOCK
    for below, folders, files in os.walk(folder / PACKAGES):
        folders.sort()
        yield Path(below)
        yield from (Path(below, name) for name in sorted(files))
        links = [name for name in folders if Path(below, name).is_symlink()]
        yield from (Path(below, name) for name in links)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who owns it and how it is linked; bytecode goes by whole seconds."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    entry.mode = FOLDER if entry.isdir() else EXECUTABLE if entry.mode & 0o100 else PLAIN
    return entry


# --- unpack ---------------------------------------------------------------------------------------


class _BoundedMember(tarfile.TarInfo):
    """Refuse headers that would be read into memory whole, whatever size they give."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type not in tarfile.SUPPORTED_TYPES:
            raise ArchiveRefused("it has an entry of an unknown type")
        if self.size < 0:  # it would count as room for the files that follow
            raise ArchiveRefused("it has an entry of a negative size")
        if self.type not in tarfile.REGULAR_TYPES and self.size > HEADER_BYTES_MAX:
            raise ArchiveRefused("it has a header that is too long")
        return super()._proc_member(tar)  # type: ignore[misc]


def unpack(file: Path, recipe: Recipe, folder: Path, settings: Settings) -> None:
    """Make an environment of its archive; raise ArchiveRefused and leave nothing if it is wrong.

    `folder` is one to work in, on the disk of the environments.
    """
    made = folder / "environment"
    made.mkdir()
    try:
        with (
            igzip.open(file, "rb") as packed,
            tarfile.open(fileobj=packed, mode="r|", tarinfo=_BoundedMember) as tar,
        ):
            _extract_all(tar, made, settings.environment_max_mb * MIB + TEXT_BYTES_MAX)
            _read_end(packed)
        stamp = _checked(made, recipe)
    except ArchiveRefused:
        shutil.rmtree(made, ignore_errors=True)
        raise
    except (*_BROKEN, BuildFailed) as error:
        shutil.rmtree(made, ignore_errors=True)
        raise ArchiveRefused(f"it is damaged ({type(error).__name__})") from None
    facts = {name: stamp.get(name) for name in ("packages", "size_bytes")}
    settle(
        made,
        recipe.environment,
        {
            "interpreter": recipe.interpreter,
            "uv": recipe.installer,
            "source_builds": recipe.source_builds,
            **facts,
        },
        settings,
    )


def _extract_all(tar: tarfile.TarFile, made: Path, bytes_max: int) -> None:
    left_bytes, left_files = bytes_max, FILES_MAX
    for member in tar:
        left_bytes, left_files = left_bytes - member.size, left_files - 1
        if left_bytes < 0 or left_files < 0:
            raise ArchiveRefused("it is larger than ADE_ENVIRONMENT_MAX_MB allows")
        place = _place(member.name, made)
        if member.isdir():
            place.mkdir(mode=FOLDER, parents=True, exist_ok=True)
        elif member.isreg() and (content := tar.extractfile(member)) is not None:
            _write(place, content, member)
        else:
            raise ArchiveRefused("it holds a link or another entry that is not a regular file")


def _read_end(packed: BinaryIO) -> None:
    """Read what fills the last block, and with it the checksum of the whole."""
    if len(packed.read(FILL_BYTES_MAX)) == FILL_BYTES_MAX:
        raise ArchiveRefused("it goes on after its end")


def _place(name: str, made: Path) -> Path:
    """Return where an entry goes: into the folder, and among the names that are known there."""
    parts = PurePosixPath(name).parts
    is_known = parts[:1] == (PACKAGES,) or (len(parts) == 1 and parts[0] in (STAMP, LOCK))
    if not is_known or len(parts) > DEPTH_MAX or ".." in parts or "\0" in name:
        raise ArchiveRefused("it holds a path that does not belong there")
    return made.joinpath(*parts)


def _write(place: Path, content: Any, member: tarfile.TarInfo) -> None:
    mode = EXECUTABLE if member.mode & 0o100 else PLAIN
    place.parent.mkdir(mode=FOLDER, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(place, flags, mode), "wb") as file:
        _copy(content, file)
    os.utime(place, (member.mtime, member.mtime))


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    shutil.copyfileobj(source, target, MIB)


def _checked(made: Path, recipe: Recipe) -> dict[str, Any]:
    """Hold the contents against what the environment is made of; return the stamp."""
    for name in (STAMP, LOCK):
        if (made / name).stat().st_size > TEXT_BYTES_MAX:
            raise ArchiveRefused(f"its {name} is too long")
    if (made / LOCK).read_text(encoding="utf-8") != recipe.lock or not recipe.is_right:
        raise ArchiveRefused("it was made from another lock")
    if not (made / PACKAGES).is_dir():
        raise ArchiveRefused("it holds no packages")
    refuse_shadows(made / PACKAGES)
    stamp: dict[str, Any] = json.loads((made / STAMP).read_text(encoding="utf-8"))
    return stamp
