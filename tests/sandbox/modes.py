"""In which situations the layers are tried: who starts the worker, and what it may do."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sandbox.launch import REFUSED_BY_DOCKER

HERE = Path(__file__).parent
FULL, LANDLOCK = "full", "landlock"
USER = 12_345
SLOT_USERS = 210_000


@dataclass(frozen=True)
class Mode:
    """Name a situation, how it is brought about, and the layers that must come out."""

    name: str
    level: str
    options: tuple[str, ...] | None = ()
    by_root: bool = False
    slot_users: bool = False
    needs_root: bool = True
    # SyscallList that the surroundings refuse first: no listener of ours hears of them.
    refused_already: frozenset[str] = frozenset()

    def layers(self, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return what `Layers` is made of in this situation."""
        return {
            "level": self.level,
            "by_root": self.by_root,
            "user_base": SLOT_USERS if self.slot_users else None,
            "without": list(without),
        }

    def command(self, program: list[str], measured: Sequence[str] = ()) -> list[str]:
        """Return the command that starts a program in this situation; `measured` are more options.

        Root starts a program as it is by not going through the launcher.
        """
        if os.geteuid() != 0 or (self.options is None and not measured):
            return program
        options = [*measured, *(self.options or ())]
        return [sys.executable, "-I", "-B", str(HERE / "launch.py"), *options, "--", *program]


AS_USER = ("--user", str(USER))
MODES = [
    Mode("root", FULL, None, by_root=True, slot_users=True),
    Mode("user", FULL, AS_USER, needs_root=False),
    Mode("root-landlock", LANDLOCK, slot_users=True),
    Mode("user-landlock", LANDLOCK, AS_USER, needs_root=False),
    Mode("no-sys-admin", FULL, ("--without", "sys_admin"), slot_users=True),
    Mode(
        "docker",
        LANDLOCK,
        ("--docker",),
        slot_users=True,
        refused_already=frozenset(REFUSED_BY_DOCKER.split()) | {"clone"},
    ),
]
BY_NAME = {mode.name: mode for mode in MODES}
FAST = ("root", "user-landlock") if os.geteuid() == 0 else ("user", "user-landlock")


def can_run(mode: Mode) -> bool:
    """Tell whether this situation can be brought about by who runs the tests."""
    return os.geteuid() == 0 or not mode.needs_root
