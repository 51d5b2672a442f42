"""The folder of a config package, and which draft of a server it was last the same as.

`.ade/draft.json` in the folder says that. It is no part of the package, and Git ignores it.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.sync.configurations import Configuration

STATE = Path(".ade", "draft.json")


@dataclass(frozen=True)
class Known:
    """The draft that a folder was last the same as."""

    server: str
    configuration_id: str
    digest: str


def name_for(folder: Path, given: str | None) -> str:
    """Return the name of the configuration: as given, as config.toml says, else the folder's."""
    if given:
        return given
    try:
        written = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")).get("name")
    except FileNotFoundError:
        written = None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{folder / 'config.toml'}: {error}") from None
    return written if isinstance(written, str) and written else folder.resolve().name


def known_digest(folder: Path, client: Client, configuration: Configuration) -> str | None:
    """Return the digest of the draft that the folder was last the same as, if it is known."""
    try:
        known = Known(**json.loads((folder / STATE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    same = (known.server, known.configuration_id) == (client.url, configuration.id)
    return known.digest if same else None


def remember(folder: Path, client: Client, configuration: Configuration, digest: str) -> None:
    """Note that the folder is now the same as the draft."""
    file = folder / STATE
    file.parent.mkdir(exist_ok=True)
    (file.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    known = Known(client.url, configuration.id, digest)
    file.write_text(json.dumps(asdict(known), indent=2) + "\n", encoding="utf-8")


def signature(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of change of every file: they tell cheaply that one changed."""
    found = {}
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part == "__pycache__" for part in parts):
            continue
        try:
            seen = path.stat()
        except FileNotFoundError:  # an editor replaced it a moment ago
            continue
        found[str(path)] = (seen.st_size, seen.st_mtime_ns)
    return found
