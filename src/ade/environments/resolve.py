"""Turn requirements into a lock: exact versions with hashes.

A lock is remembered for a while: a second version with the same requirements asks no registry, and
gets the same packages as the first.
"""

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from ade.domain.keys import digest
from ade.environments.environment import interpreter
from ade.environments.failure import MESSAGE_CHARS_MAX, BuildFailed, not_installed
from ade.environments.provided import offer, provided
from ade.environments.tool import Tool, uv_version
from ade.settings import Settings

RESOLVED = "resolved"
PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
OWN_PINS_MAX = 5
OWN_PINS_CHARS_MAX = 400
NO_SOURCE = (
    "requirements.txt names packages, and there is nowhere to get them: ADE_BUILD_NETWORK is off"
    " and no ADE_WHEELHOUSE is set."
)


@dataclass(frozen=True, slots=True)
class Lock:
    """Hold what is to be installed; no text means that nothing is."""

    text: str
    source_builds: bool

    @property
    def packages(self) -> list[str]:
        """List names and versions."""
        return [f"{name}=={version}" for name, version in PINNED.findall(self.text)]

    @property
    def digest(self) -> str:
        """Name the resulting environment."""
        return environment_digest(
            self.text, interpreter(), uv_version(), source_builds=self.source_builds
        )


def environment_digest(lock: str, made_for: str, installer: str, *, source_builds: bool) -> str:
    """Name the environment that a lock becomes, with an interpreter and a version of uv."""
    return digest(
        {
            "lock": lock,
            "interpreter": made_for,
            "uv": installer,
            "source_builds": source_builds,
        }
    )


async def resolve(requirements: list[str], tool: Tool, folder: Path) -> Lock:
    """Find versions that fit together and with the engine's own; work in its own folder."""
    settings = tool.settings
    if settings.wheelhouse is None and not settings.build_network:
        raise not_installed(NO_SOURCE)
    if settings.wheelhouse is not None and not settings.wheelhouse.is_dir():
        raise not_installed("ADE_WHEELHOUSE names a folder that does not exist.")
    memory = _memory(requirements, settings)
    text = _recall(memory, settings.resolution_hours * 3600)
    if text is None:
        text = await _compile(requirements, tool, folder)
        _remember(memory, text, folder)
    else:
        tool.log("The same requirements were resolved before; the same versions are taken.")
    return Lock(text, settings.source_builds)


async def _compile(requirements: list[str], tool: Tool, folder: Path) -> str:
    wanted, pins = folder / "requirements.txt", folder / "engine.txt"
    wanted.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    pins.write_text("\n".join(offer(folder / "engine")) + "\n", encoding="utf-8")
    there = [argument for package in provided() for argument in ("--no-emit-package", package.name)]
    try:
        compiled = await tool.run(
            [
                *("pip", "compile", *tool.sources(), "--generate-hashes", "--no-annotate"),
                *("--no-header", "--no-emit-index-url", "--constraints", pins.name),
                *("--find-links", str(folder / "engine"), *there, wanted.name),
            ],
            folder,
        )
    except BuildFailed as failed:
        raise not_installed(_with_whose(failed.error.message, requirements)) from None
    lines = [line for line in compiled.splitlines() if line and not line.startswith("#")]
    return "".join(f"{line}\n" for line in lines)


def _with_whose(message: str, requirements: list[str]) -> str:
    """Say which of the requirements that uv names are ADE's own: uv calls all of them "yours"."""
    pins = (f"{package.name}=={package.version}" for package in provided())
    own = [pin for pin in pins if pin in message and pin not in requirements]
    if not own:
        return message
    verb = "is required" if len(own) == 1 else "are required"
    short = message[: MESSAGE_CHARS_MAX - OWN_PINS_CHARS_MAX].rstrip(".")
    return f"{short}. {', '.join(own[:OWN_PINS_MAX])} {verb} by ADE itself: its engine runs on it."


def _memory(requirements: list[str], settings: Settings) -> Path:
    """Name the file that caches how these requirements were resolved on this host."""
    source: object = None
    if settings.wheelhouse is not None:
        source = _listing(settings.wheelhouse)
    elif settings.index_url is not None:
        source = settings.index_url.get_secret_value()
    request = {
        "requirements": requirements,
        "engine": [[package.name, package.version] for package in provided()],
        "interpreter": interpreter(),
        "uv": uv_version(),
        "source": source,
        "source_builds": settings.source_builds,
    }
    name = digest(request).partition(":")[2]
    return settings.activation_envs_dir.resolve() / RESOLVED / f"{name}.json"


def _listing(wheelhouse: Path) -> list[list[object]]:
    with os.scandir(wheelhouse) as entries:
        found = [(entry.name, entry.stat()) for entry in entries]
    return sorted([name, facts.st_size, facts.st_mtime_ns] for name, facts in found)


def _recall(memory: Path, seconds_max: float) -> str | None:
    try:
        kept = json.loads(memory.read_text(encoding="utf-8"))
        now = time.time()  # noqa: TID251 - a step costs a resolution, or repeats an old one
        age_seconds = now - kept["at"]
        return str(kept["lock"]) if 0 <= age_seconds < seconds_max else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(memory: Path, text: str, folder: Path) -> None:
    memory.parent.mkdir(parents=True, exist_ok=True)
    written = folder / "resolved.json"
    at = time.time()  # noqa: TID251 - compared with the clock of the same machine
    written.write_text(json.dumps({"at": at, "lock": text}), encoding="utf-8")
    written.replace(memory)
