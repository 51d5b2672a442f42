"""Call the fork handlers that packages registered, where Python does not know of the fork.

What Python itself does after a fork is for threads that no longer exist. A zygote has one thread,
and doing it anyway would copy a hundred pages in each child. So `threading` and `random` (which
every child seeds anew) are imported before anything is recorded here; the handlers that packages
register while they are imported are called as Python would call them.

What compiled libraries register to be called at exit is dropped: such a handler may wait for a
thread of the zygote, which a forked job does not have.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random  # noqa: F401
import threading  # noqa: F401
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_recorded: list[dict[str, Any]] = []


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Record the handlers that are registered in this block."""
    register = os.register_at_fork

    def record(**handlers: Any) -> None:
        register(**handlers)  # a job may fork as Python does
        _recorded.append(handlers)

    at_exit = atexit.register

    def record_exit(function: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(function, (FunctionType, MethodType)):
            at_exit(function, *args, **kwargs)
        return function

    os.register_at_fork = record
    atexit.register = record_exit  # type: ignore[assignment]
    try:
        yield
    finally:
        os.register_at_fork, atexit.register = register, at_exit


def call(when: str) -> None:
    """Call the recorded handlers: `before`, `after_in_child` or `after_in_parent`."""
    for handlers in reversed(_recorded) if when == "before" else _recorded:
        if when in handlers:
            with contextlib.suppress(Exception):  # as Python does; a job cannot use it
                handlers[when]()
