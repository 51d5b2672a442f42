"""Write the stack of a job to its channel when the job is about to be stopped.

The kernel sends SIGXCPU to a process that has used up its CPU time. The supervisor sends the same
signal shortly before it kills a job that exceeds its wall clock or another limit. The interpreter
answers by writing its stack to the channel, one frame per line; the parent finds in it which line
of the job's code was running. The signal handler itself writes the stack, so this also works while
a library computes or waits and the interpreter runs no Python code.
"""

import faulthandler
import io
import signal
from contextlib import suppress
from typing import TextIO

STACK_DUMP_SIGNAL = signal.SIGXCPU


def dump_stack_to(stream: TextIO) -> None:
    """Write the stack to a stream whenever the signal arrives; needs a stream with a descriptor."""
    with suppress(io.UnsupportedOperation, RuntimeError):
        # chain: after the dump the signal takes its default action, which ends the process.
        faulthandler.register(
            STACK_DUMP_SIGNAL, file=stream.fileno(), all_threads=False, chain=True
        )
