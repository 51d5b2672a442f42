"""Write the artifacts that ADE makes of a cell's values, and number them as they appear."""

import os
from collections.abc import Callable
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel

REASON_CHARS_MAX = 200


class ArtifactWriter:
    """Write artifacts under names that the cell has not used, each with its place in the order."""

    def __init__(self, formats: list[str], channel: Channel) -> None:
        self.formats = formats
        self._channel = channel
        self._folder = os.path.abspath(ARTIFACTS_FOLDER)  # the cell may change its folder
        self._order = 0

    def wants(self, format_: str) -> bool:
        """Tell whether a format is wanted; without a choice, all are."""
        return not self.formats or format_ in self.formats

    def write(
        self,
        stem: str,
        ending: str,
        write: Callable[[str], object],
        *,
        kind: str,
        metadata: dict[str, Any] | None = None,
    ) -> str | None:
        """Let `write` make a file, and declare it; if it fails, warn and return None."""
        name = unused_name(self._folder, stem, ending)
        path = f"{self._folder}/{name}"
        try:
            write(path)
        except Exception as error:
            if os.path.lexists(path):
                os.unlink(path)
            self.warn(f"{name} was not written: {reason(error)}")
            return None
        self._order += 1
        about = {**(metadata or {}), "order": self._order}
        self._channel.artifact(name, kind=kind, metadata=about)
        return name

    def warn(self, message: str) -> None:
        """Tell the reader of the result what could not be shown."""
        self._channel.warning(message)


def reason(error: Exception) -> str:
    """Describe in one short line what failed."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}"[:REASON_CHARS_MAX].rstrip(": ")


def unused_name(folder: str, stem: str, ending: str) -> str:
    """Choose the name of a file that the cell has not used itself."""
    os.makedirs(folder, exist_ok=True)
    number, name = 1, f"{stem}.{ending}"
    while os.path.lexists(f"{folder}/{name}"):
        number += 1
        name = f"{stem}-{number}.{ending}"
    return name
