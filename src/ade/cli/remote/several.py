"""Do one thing for each of many, a few at a time, in threads that Ctrl-C leaves behind."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """Why there is no result."""

    error: Exception


def each(
    items: Sequence[Item], do: Callable[[Item], Result], concurrency: int
) -> Iterator[tuple[Item, Result | Failed]]:
    """Yield each item with what `do` returned, or why it failed, as soon as it is done.

    The threads of an executor would be waited for at the end of the program; these are not.
    """
    waiting: SimpleQueue[Item] = SimpleQueue()
    done: SimpleQueue[tuple[Item, Result | Failed]] = SimpleQueue()
    for item in items:
        waiting.put(item)

    def work() -> None:
        while True:
            try:
                item = waiting.get_nowait()
            except Empty:
                return
            try:
                done.put((item, do(item)))
            except Exception as error:
                done.put((item, Failed(error)))

    for _ in range(min(concurrency, len(items))):
        threading.Thread(target=work, daemon=True).start()
    for _ in items:
        yield done.get()
