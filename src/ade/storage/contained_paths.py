"""Open files below a folder that others write to, without being led out of it.

The model. Containers and workers that are not ADE's own write to the shared folder, so any name in
it may be, or become, a symbolic link to anywhere. Every file is therefore opened one name at a
time, relative to the folder that was opened before, and no symbolic link is followed on the way. A
name is checked before: it is one part of a path, not a path.

    what is at the name                        what happens
    -----------------------------------------  -------------------------------------------------
    a symbolic link, also one that stays       UnsafePath
    inside
    a pipe, a device or a folder in place of   UnsafePath; opening one does not block
    a file
    nothing                                    FileNotFoundError, unless it is to be made
    a folder that is renamed meanwhile         the file that was opened is used

It does not protect against hard links: whoever may make one may read the file anyway.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ade.domain.errors import PayloadTooLarge, StorageFull, UnsafePath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_LINKS = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
NAME_BYTES_MAX = 255
UNFINISHED_PREFIX = ".unfinished-"


def check_name(name: str) -> str:
    """Accept one part of a path, or raise UnsafePath."""
    if (
        name in ("", ".", "..")
        or "/" in name
        or "\0" in name
        or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX
    ):
        raise UnsafePath(
            "A path has parts of 1 to 255 bytes, separated by '/', none of them '.' or '..'."
        )
    return name


@contextlib.contextmanager
def opened_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open a folder below the root, which may be made; yield its descriptor."""
    with _refused(parts):
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in map(check_name, parts):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def open_file(folder: int, name: str, flags: int) -> int:
    """Open a regular file of a folder, or raise UnsafePath."""
    with _refused([name]):
        descriptor = os.open(check_name(name), flags | _FILE, 0o666, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _unsafe([name])
    return descriptor


def read_file(root: Path, parts: Sequence[str], bytes_max: int) -> bytes | None:
    """Read a file below the root; None if there is none, PayloadTooLarge if it is too large."""
    try:
        with opened_folder(root, parts[:-1]) as folder:
            descriptor = open_file(folder, parts[-1], os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise PayloadTooLarge(f"{'/'.join(parts)} has more than {bytes_max} bytes.")
    return content


def replace_file(root: Path, parts: Sequence[str], content: bytes) -> None:
    """Write a file below the root: readers see the earlier content or this one, nothing between."""
    name = check_name(parts[-1])
    with (
        opened_folder(root, parts[:-1], make=True) as folder,
        _written(folder, content) as unfinished,
        _refused(parts),
    ):
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)


def create_file(root: Path, parts: Sequence[str], content: bytes) -> bool:
    """Write a new file below the root, whole or not at all; False if something is there already."""
    name = check_name(parts[-1])
    with (
        opened_folder(root, parts[:-1], make=True) as folder,
        _written(folder, content) as unfinished,
    ):
        try:
            os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # Here two that create the same file at the same moment are not told apart.
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
                return False
            os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


@contextlib.contextmanager
def _written(folder: int, content: bytes) -> Iterator[str]:
    """Write a file under a name of its own, which is gone afterwards; yield the name."""
    unfinished = f"{UNFINISHED_PREFIX}{secrets.token_hex(8)}"
    try:
        descriptor = open_file(folder, unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with room(), open(descriptor, "wb") as file:
            file.write(content)
        yield unfinished
    finally:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)


def remove_file(root: Path, parts: Sequence[str]) -> None:
    """Remove a file below the root, if it is there; a symbolic link itself is removed."""
    name = check_name(parts[-1])
    with (
        contextlib.suppress(FileNotFoundError),
        opened_folder(root, parts[:-1]) as folder,
        _refused(parts),
    ):
        os.unlink(name, dir_fd=folder)


def remove_folder(root: Path, parts: Sequence[str]) -> None:
    """Remove a folder below the root with all that is in it, if it is there."""
    name = check_name(parts[-1])
    with (
        contextlib.suppress(FileNotFoundError),
        opened_folder(root, parts[:-1]) as folder,
    ):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            _remove_tree(folder, name)
        else:
            os.unlink(name, dir_fd=folder)


def _remove_tree(folder: int, name: str) -> None:
    """Remove a folder with all that is in it, however deep it is.

    What is further down is moved to its top first, so that one descriptor for each level is not
    needed. No symbolic link is followed.
    """
    top = os.open(name, _FOLDER, dir_fd=folder)
    try:
        waiting = _remove_contents(top, top)
        while waiting:
            current = waiting.pop()
            inner = os.open(current, _FOLDER, dir_fd=top)
            try:
                waiting += _remove_contents(inner, top)
            finally:
                os.close(inner)
            os.rmdir(current, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=folder)


def _remove_contents(folder: int, top: int) -> list[str]:
    """Remove what is no folder or an empty one; return the names of the others in `top`."""
    moved = []
    for name in os.listdir(folder):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            continue
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            unused = f"{UNFINISHED_PREFIX}{secrets.token_hex(8)}"
            os.rename(name, unused, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(unused)
    return moved


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Raise StorageFull where the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull("The shared folder is full; nothing more was kept.") from None
        raise


@contextlib.contextmanager
def _refused(parts: Sequence[str]) -> Iterator[None]:
    """Raise UnsafePath for what is not a file or a folder of the kind that is expected."""
    with room():
        try:
            yield
        except OSError as error:
            if error.errno in _LINKS:
                raise _unsafe(parts) from None
            raise


def _unsafe(parts: Sequence[str]) -> UnsafePath:
    return UnsafePath(
        f"{'/'.join(parts)[:300]!r} in the shared folder is a symbolic link, or not a plain file or"
        " folder. Replace it by one."
    )
