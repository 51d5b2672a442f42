"""Write a file that is either whole or not there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write to a file beside `path` that takes its place at the end; an error leaves nothing."""
    place = Path(path)
    new = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with open(new, "xb") as file:
            yield file
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)


def place_for(path: str | os.PathLike[str] | None, name: str) -> Path:
    """Return where a download goes: a folder takes it under its own name."""
    own = Path(name).name or "download"
    if path is None:
        return Path(own)
    place = Path(path)
    return place / own if place.is_dir() else place
