"""The files of a config package: read from a folder, packed, unpacked and compared."""

import difflib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ade.client.errors import ClientError

FILES_MAX = 1000
PACKAGE_BYTES_MAX = 32 * 1024 * 1024
# What Python, editors and version control leave in a folder, and what is no part of a package.
LITTER = frozenset({"__pycache__", "__MACOSX", "Thumbs.db", "desktop.ini"})
NOTHING = "/dev/null"
_THE_DAY = (1980, 1, 1, 0, 0, 0)
Files = Mapping[str, bytes]


class NotAPackage(ClientError):
    """The folder cannot be pushed as a config package."""


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder; hidden ones and what Python leaves are left out."""
    if not folder.is_dir():
        raise NotAPackage(f"{folder} is not a folder.")
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(_walk(folder)):
        size += path.stat().st_size
        if len(found) >= FILES_MAX or size > PACKAGE_BYTES_MAX:
            raise NotAPackage(
                f"{folder} has more than {FILES_MAX} files or 32 MiB, too much for a package."
            )
        found[path.relative_to(folder).as_posix()] = path.read_bytes()
    if not found:
        raise NotAPackage(f"{folder} has no files; `ade config init {folder}` writes some.")
    return found


def pack(files: Files) -> bytes:
    """Write files as an archive; the same files are the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, _THE_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[path])
    return packed.getvalue()


def unpack(packed: bytes) -> dict[str, bytes]:
    """Read the files of an archive of the server."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if sum(entry.file_size for entry in entries) > PACKAGE_BYTES_MAX:
            raise NotAPackage("The archive has more than 32 MiB.")
        return {entry.filename: archive.read(entry) for entry in entries}


def write_folder(folder: Path, files: Files) -> list[str]:
    """Write files below a folder; return the paths of those that changed. Others are left alone."""
    folder = folder.resolve()
    changed = []
    for path, content in sorted(files.items()):
        place = (folder / path).resolve()
        if not place.is_relative_to(folder) or place == folder:
            raise NotAPackage(f"The archive has a path that leads elsewhere: {path!r}.")
        if place.is_file() and place.read_bytes() == content:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        changed.append(path)
    return changed


def package_digest(files: Files) -> str:
    """Return the digest by which the server names a set of files."""
    named = sorted([path, _digest(content)] for path, content in files.items())
    text = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
    return _digest(text.encode())


def differences(before: Files, after: Files, old: str, new: str) -> Iterator[str]:
    """Yield the lines of a unified diff of two sets of files."""
    for path in sorted({*before, *after}):
        first, second = before.get(path), after.get(path)
        if first == second:
            continue
        try:
            lines, others = _lines(first), _lines(second)
        except UnicodeDecodeError:
            yield f"Binary files {old}/{path} and {new}/{path} differ\n"
            continue
        names = (
            NOTHING if first is None else f"{old}/{path}",
            NOTHING if second is None else f"{new}/{path}",
        )
        for line in difflib.unified_diff(lines, others, *names):
            yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode().splitlines(keepends=True)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in LITTER or path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file() and path.suffix != ".pyc":
            yield path


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
