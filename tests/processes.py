"""What tests need to know of other processes: whether they live, whose children they are."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

LOOK_SECONDS = 0.01
PATIENCE_SECONDS = 20.0
Found = TypeVar("Found")


def is_alive(pid: int) -> bool:
    """Tell whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def is_frozen(pid: int) -> bool:
    """Tell whether every thread of a process has stopped."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


def children_of(pid: int) -> set[int]:
    """List the living children of a process, of all of its threads."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found |= {int(word) for word in task.read_text().split()}
        except (FileNotFoundError, ProcessLookupError):
            continue
    return {child for child in found if is_alive(child)}


def tree(pid: int) -> set[int]:
    """List everything below a process."""
    below = children_of(pid)
    return below.union(*map(tree, below))


def jobs_of(pid: int) -> set[int]:
    """List the processes that run jobs for a server; children that wait for one do not count."""
    return {below for below in tree(pid) if name_of(below) == "ade-job"}


def name_of(pid: int) -> str:
    """Return the name that a process has at the moment; nothing if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def eventually(look: Callable[[], Found | None], seconds: float = PATIENCE_SECONDS) -> Found:
    """Look until something is found; fail when the time is up."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, f"it did not happen within {seconds:g} s"
        time.sleep(LOOK_SECONDS)
    return found


async def aeventually(look: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Look until something is found, without holding up the event loop."""
    async with asyncio.timeout(seconds):
        while True:
            seen = look()
            found = await seen if isinstance(seen, Awaitable) else seen
            if found:
                return found
            await asyncio.sleep(LOOK_SECONDS)
