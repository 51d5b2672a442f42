"""Say where the code is when it is about to be stopped.

The kernel sends SIGXCPU when a process has used up its CPU time; whoever runs a job sends the same
when its wall clock is over or it has taken too much of something else, a moment before it kills.
The interpreter answers with its stack, one frame a line, on the private line. It does so from
within the signal's handler: also while a library computes or waits and no line of Python is run.
"""

import faulthandler
import io
import signal
from contextlib import suppress
from typing import TextIO

ASKED_BY = signal.SIGXCPU


def answer_on(stream: TextIO) -> None:
    """Answer on a stream from now on; one that is no file of the system is never written to."""
    with suppress(io.UnsupportedOperation, RuntimeError):
        # What the signal does otherwise, it does afterwards: it ends the process, where it can.
        faulthandler.register(ASKED_BY, file=stream.fileno(), all_threads=False, chain=True)
