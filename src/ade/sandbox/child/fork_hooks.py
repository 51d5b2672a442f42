"""Tell packages of a fork that Python itself is not told of.

What Python does after a fork is for the threads that are no more. A zygote has one thread, and
putting in order what was in order would copy a hundred pages in each child. So `threading` and
`random` (which every child seeds anew) are imported before anything is noted here; what packages
ask for while they are imported is done as Python would do it.
"""

import contextlib
import os
import random  # noqa: F401
import threading  # noqa: F401

_noted: list = []


@contextlib.contextmanager
def noting():
    """Note what is asked for in here."""
    register = os.register_at_fork

    def note(**asked):
        register(**asked)  # a job may fork as Python does
        _noted.append(asked)

    os.register_at_fork = note
    try:
        yield
    finally:
        os.register_at_fork = register


def tell(when):
    """Do what was asked for: `before`, `after_in_child` or `after_in_parent`."""
    for asked in reversed(_noted) if when == "before" else _noted:
        if when in asked:
            with contextlib.suppress(Exception):  # as Python does, and a job has no use for it
                asked[when]()
