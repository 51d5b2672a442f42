"""Name the exit codes that scripts may rely on."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What ``ade`` tells the shell."""

    OK = 0
    JOB_FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    UNAVAILABLE = 5
    WAIT_TIMED_OUT = 124
    INTERRUPTED = 130
