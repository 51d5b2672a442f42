"""Configurations as zip archives from untrusted sources.

Nothing that an archive says of itself is believed before it is held against a limit: the size of
its directory before that is read, the number of its entries, the names, and every size while the
bytes inflate. A file or a whole that grows over its limit is refused there and then, so that a bomb
is never larger than the limits, whatever its ratio. Nothing is unpacked to a path of its choosing:
files are read into memory one at a time and become blobs.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ade.domain.errors import InvalidRequest, PayloadTooLarge
from ade.domain.file_names import config_path, refuse_clashes
from ade.domain.units import MIB

FILE_BYTES_MAX = MIB
ARCHIVE_BYTES_MAX = 32 * MIB
ENTRIES_MAX = 4000
DIRECTORY_BYTES_MAX = 2 * MIB
# Folders of a package itself; a single one of these at the top is not an envelope around it.
OWN_FOLDERS = frozenset({"columns", "row_types", "hooks"})
# What other programs leave in archives, and what is dropped.
LITTER_FOLDERS = frozenset({"__MACOSX", "__pycache__", ".git"})
LITTER_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\5\6"
_END64_MARK = b"PK\6\7"
_END64_BYTES = 20
_COMMENT_BYTES_MAX = 65_535
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_THE_DAY = (1980, 1, 1, 0, 0, 0)
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
)


def read_package(file: BinaryIO, *, files_max: int, bytes_max: int) -> Iterator[tuple[str, bytes]]:
    """Give the files of an archive by their paths, one at a time, or raise what is wrong with it.

    One folder around everything is left out, and so is what file managers and Python leave behind.
    """
    _look_at_end(file)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = _named(_files(archive.infolist()))
            if len(entries) > files_max:
                raise InvalidRequest(f"A configuration has at most {files_max} files.")
            left = bytes_max
            for path, entry in entries.items():
                content = _content(archive, entry, path)
                left -= len(content)
                if left < 0:
                    raise PayloadTooLarge(
                        f"The files of a configuration have {bytes_max // MIB} MiB at most."
                    )
                yield path, content
    except _BROKEN:
        raise InvalidRequest("The archive is damaged, or not a plain zip.") from None


def write_package(file: BinaryIO, paths: Iterable[str], content: Callable[[str], bytes]) -> None:
    """Write files as an archive; the same files are the same bytes, whenever it is done."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path in sorted(paths):
            entry = zipfile.ZipInfo(path, _THE_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content(path))


def folder_package(folder: Path) -> dict[str, bytes]:
    """Read a package that lies in a folder of ours."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not _is_litter(name):
            found[config_path(name)] = path.read_bytes()
    return found


def _look_at_end(file: BinaryIO) -> None:
    """Refuse a directory that is too large to be read, where `zipfile` would find it."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END64_BYTES - _END.size - _COMMENT_BYTES_MAX))
    tail = file.read()
    file.seek(0)
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != _END_MARK or tail[-2:] != b"\0\0":
        at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END.size:
        raise InvalidRequest("The body is not a zip archive.")
    _, disk, first_disk, here, entries, directory_bytes, offset, _ = _END.unpack_from(tail, at)
    before = tail[max(0, at - _END64_BYTES) : at]
    if before.startswith(_END64_MARK):  # another directory than this one would be read
        raise InvalidRequest("Zip64 archives are not supported.")
    if disk or first_disk or here != entries or offset > size:
        raise InvalidRequest("The archive is damaged, or not a plain zip.")
    if entries > ENTRIES_MAX or directory_bytes > DIRECTORY_BYTES_MAX:
        raise PayloadTooLarge(f"An archive has at most {ENTRIES_MAX} entries.")


def _files(entries: list[zipfile.ZipInfo]) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    """Give the entries that are files, with their names as they were written."""
    if len(entries) > ENTRIES_MAX:
        raise PayloadTooLarge(f"An archive has at most {ENTRIES_MAX} entries.")
    for entry in entries:
        name = entry.orig_filename
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name.endswith("/") and kind in (0, stat.S_IFDIR):
            config_path(name.rstrip("/"))
            continue
        if kind not in (0, stat.S_IFREG):
            raise _refused(name, "it is a link or another entry that is not a regular file")
        if entry.flag_bits & _ENCRYPTED:
            raise _refused(name, "it is encrypted")
        if entry.compress_type not in _METHODS:
            raise _refused(name, "it is compressed with a method other than deflate")
        yield config_path(name), entry


def _named(files: Iterable[tuple[str, zipfile.ZipInfo]]) -> dict[str, zipfile.ZipInfo]:
    """Drop what other programs left in the archive, and a folder around everything."""
    found: dict[str, zipfile.ZipInfo] = {}
    for path, entry in files:
        if path in found:
            raise _refused(path, "it is there twice")
        if not _is_litter(path):
            found[path] = entry
    tops = {path.partition("/")[0] for path in found}
    wrapped = len(tops) == 1 and all("/" in path for path in found) and not tops & OWN_FOLDERS
    if wrapped:
        found = {path.partition("/")[2]: entry for path, entry in found.items()}
    refuse_clashes(found)
    return found


def _is_litter(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return (
        not LITTER_FOLDERS.isdisjoint(parts)
        or parts[-1] in LITTER_FILES
        or parts[-1].startswith("._")
        or parts[-1].endswith(".pyc")
    )


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str) -> bytes:
    """Inflate a file up to its limit, whatever size it says that it has."""
    with archive.open(entry) as stream:
        content = stream.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise PayloadTooLarge(f"{path!a} is larger than {FILE_BYTES_MAX // 1024} KiB.")
    return content


def _refused(name: str, why: str) -> InvalidRequest:
    shown = ascii(name[:200])
    return InvalidRequest(
        f"{shown} in the archive is refused: {why}.", errors=[{"field": shown, "message": why}]
    )
