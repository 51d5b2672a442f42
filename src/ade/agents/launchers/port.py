"""What a scaler needs of an engine.

A block is known by its name, which is unique and chosen before it is launched; the names of one
scaler have a prefix in common. A block that `poll` does not list has ended. Why it ended is not the
engine's to say: a pilot registers in the database, and notes there when it leaves.

    what happens                              what the caller sees
    ----------------------------------------  ------------------------------------------------------
    the engine does not answer                EngineAway; never an empty list
    an order failed, and may have been taken  EngineAway; the next `poll` lists its name, or not
    the engine refuses an order               BlockRefused, with what the engine said
    the scaler restarts                       `poll` lists the blocks of its prefix as before
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class EngineAway(Exception):
    """The engine did not answer: nothing is known about its blocks."""


class BlockRefused(Exception):
    """The engine refused to take a block; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Block:
    """Name a block that the engine lists, and say whether it has started."""

    name: str
    id: str
    is_started: bool
    detail: str = ""


class Launcher(Protocol):
    """Start, list and end blocks on an engine."""

    async def launch(self, name: str, command: Sequence[str]) -> str:
        """Order a block that runs a command, and return the engine's id of it."""
        ...

    async def poll(self) -> list[Block]:
        """List the blocks of this scaler that have not ended, or raise EngineAway."""
        ...

    async def drain(self, ids: Sequence[str]) -> None:
        """Ask the pilots of blocks to drain, and let their jobs end within the grace period."""
        ...

    async def cancel(self, ids: Sequence[str]) -> None:
        """End blocks; those that have ended are passed over."""
        ...

    def describe(self) -> str:
        """Say in one line where blocks are started."""
        ...
