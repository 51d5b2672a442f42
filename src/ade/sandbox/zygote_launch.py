"""Start the launcher of a zygote."""

import os
import signal
import sys
from pathlib import Path

from ade.sandbox.child.plan import ZygotePlan

LAUNCH = Path(__file__).parent / "child" / "launch.py"
# The worker's own environment variables do not enter the sandbox. Libraries get one thread, because
# jobs are many and processors are few, and a zygote must not have a second one.
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "POLARS_MAX_THREADS": "2",
    "_RJEM_MALLOC_CONF": "background_thread:false",  # the allocator of polars
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # the allocator of pyarrow
    "PYTHONHASHSEED": "0",  # the same code gives the same order of a set on every server
}


def launch(plan: ZygotePlan, line: int) -> tuple[int, int]:
    """Start the launcher with its end of the line; return (pid, its error output).

    The zygote dies with the thread that calls this.
    """
    stderr, theirs = os.pipe()
    argv = [sys.executable, "-I", "-B", str(LAUNCH), plan.source, plan.as_json()]
    try:
        launched = os.posix_spawn(
            sys.executable,
            argv,
            CLEAN_ENVIRONMENT,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs, 2),
                (os.POSIX_SPAWN_DUP2, line, 3),
            ],
            setsigdef=signal.valid_signals(),
            setsigmask=(),
        )
    except BaseException:
        os.close(stderr)
        raise
    finally:
        os.close(theirs)
    return launched, stderr
