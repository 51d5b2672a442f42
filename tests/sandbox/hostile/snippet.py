"""What one piece of hostile code is, and what must come of it."""

from dataclasses import dataclass, field

from tests.sandbox.modes import FULL, LANDLOCK, Mode

OK = "succeeded"
DENIED = "SANDBOX_VIOLATION/OPERATION_DENIED"
RAISED = "USER_CODE_ERROR/PYTHON_EXCEPTION"
TIMED_OUT = "RESOURCE_LIMIT/TIMED_OUT"
MEMORY = "RESOURCE_LIMIT/MEMORY_LIMIT"
CPU = "RESOURCE_LIMIT/CPU_LIMIT"
PROCESSES = "RESOURCE_LIMIT/PROCESS_LIMIT"
DISK = "RESOURCE_LIMIT/DISK_LIMIT"
FILE_SIZE = "RESOURCE_LIMIT/FILE_SIZE_LIMIT"
OPEN_FILES = "RESOURCE_LIMIT/OPEN_FILES_LIMIT"
OUTPUT = "RESOURCE_LIMIT/OUTPUT_LIMIT"
RESULT = "RESOURCE_LIMIT/RESULT_TOO_LARGE"
BY_SIGNAL = "USER_CODE_ERROR/KILLED_BY_SIGNAL"
NO_RESULT = "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"
BAD_RESULT = "USER_CODE_ERROR/BAD_RESULT"
WORDLESS = "USER_CODE_ERROR/FAILED_WITHOUT_WORDS"
NO_MODULE = "DEPENDENCY_ERROR/MODULE_NOT_FOUND"

NOWHERE = "nowhere"  # the place of an error that names none
HARM = "harm"  # the value that a snippet ends with when it got what it wanted

PRELUDE = """
import ctypes, errno, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *arguments):
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    found = libc.syscall(ctypes.c_long(calls[name]), *words)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, name + ": " + os.strerror(number))
    return found
"""


@dataclass(frozen=True)
class Snippet:
    """Hold a cell of Python, its limits, and its expected outcome.

    `control` is empty where the snippet can be run without a sandbox and then does harm: its value
    is HARM or the surroundings bear traces. Otherwise it says why that is not tried.
    """

    name: str
    source: str
    expected: str | tuple[str, ...] = DENIED
    at_landlock: str | tuple[str, ...] | None = None
    in_mode: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    limits: dict[str, int] = field(default_factory=dict)
    control: str = ""
    companion: bool = False
    slow: bool = False
    value: object = None
    artifacts: tuple[str, ...] = ()
    seconds_max: float = 6.0
    machine: str = ""
    only: str = ""
    place: str = ""
    is_timed: bool = False

    @property
    def code(self) -> str:
        """Return the whole cell."""
        return PRELUDE + self.source

    def asked(self) -> dict[str, object]:
        """Return what a driver is asked."""
        return {
            "name": self.name,
            "source": self.code,
            "limits": self.limits,
            "companion": self.companion,
            "is_timed": self.is_timed,
        }

    def verdicts(self, mode: Mode) -> tuple[str, ...]:
        """Return what may come of it in a situation."""
        expected = self.expected
        if mode.level == LANDLOCK and self.at_landlock is not None:
            expected = self.at_landlock
        expected = self.in_mode.get(mode.name, expected)
        return (expected,) if isinstance(expected, str) else expected


NO_HARM = "there is no harm in it, only a verdict to get right"
__all__ = ["FULL", "LANDLOCK"]
