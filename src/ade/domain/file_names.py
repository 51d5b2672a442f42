"""File names that users chose: which characters are removed, and what is refused.

A document's name is shown and offered again for download, so what cannot be part of a name is
removed from it. A path in a configuration names a place in a folder, so a path that is not plain is
refused instead of guessing what was meant.
"""

import re
import unicodedata
from collections.abc import Iterable

from ade.domain.errors import InvalidRequest

NAME_CHARS_MAX = 200
SUFFIX_CHARS_MAX = 20
UNNAMED = "document"
UNREADABLE = frozenset("\\\N{REPLACEMENT CHARACTER}")
PATH_CHARS_MAX = 200
PATH_DEPTH_MAX = 8
_SEPARATORS = re.compile(r"[/\\]")


def document_name(given: str) -> str:
    """Return a safe form of an uploaded file's name: its last part, printable and not too long.

    Control characters, marks that change the direction of the text and halves of surrogate pairs
    are removed; a name that is too long is cut before its suffix.
    """
    last = _SEPARATORS.split(unicodedata.normalize("NFC", given))[-1]
    name = " ".join("".join(c if c.isprintable() else " " for c in last).split())
    if not name.strip(". "):
        return UNNAMED
    if len(name) <= NAME_CHARS_MAX:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix) > SUFFIX_CHARS_MAX:
        return name[:NAME_CHARS_MAX]
    return stem[: NAME_CHARS_MAX - len(suffix) - 1] + dot + suffix


def config_path(given: str) -> str:
    """Return the path of a file in a configuration, or raise what is wrong with it."""
    path = unicodedata.normalize("NFC", given)
    parts = path.split("/")
    if not path or len(path) > PATH_CHARS_MAX:
        raise _refused(given, f"a path has 1 to {PATH_CHARS_MAX} characters")
    if not path.isprintable() or not UNREADABLE.isdisjoint(path):
        raise _refused(given, "a path has no backslash and no character that cannot be shown")
    if len(parts) > PATH_DEPTH_MAX:
        raise _refused(given, f"a path has at most {PATH_DEPTH_MAX} parts")
    if any(part in ("", ".", "..") or part != part.strip() for part in parts):
        raise _refused(given, "a path is relative, with plain names between single slashes")
    return path


def refuse_clashes(paths: Iterable[str]) -> None:
    """Raise if a path is also the folder of another one."""
    known = set(paths)
    for path in known:
        folder, slash, _ = path.rpartition("/")
        while slash:
            if folder in known:
                raise _refused(path, f"{_shown(folder)} is a file, not a folder")
            folder, slash, _ = folder.rpartition("/")


def _refused(path: str, why: str) -> InvalidRequest:
    shown = _shown(path)
    return InvalidRequest(
        f"The path {shown} is not allowed: {why}.", errors=[{"field": shown, "message": why}]
    )


def _shown(path: str) -> str:
    return ascii(path[:PATH_CHARS_MAX])
