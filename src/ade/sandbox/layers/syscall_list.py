"""A list of system calls, prepared once and executed many times.

A forked interpreter copies a page of memory for almost every object that it touches. So Python does
not make the calls between the fork and the moment at which the child waits for its run spec: a few
machine instructions execute a prepared list. Each entry holds what the call must return, and the
list ends at the first call that returns anything else. On a machine whose instructions are not
known here, or where memory may not be made executable, Python executes the list call by call.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING

from ade.sandbox.layers import linux

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ANYTHING = (-(1 << 63), (1 << 63) - 1)
NO_FAILURE = (0, (1 << 63) - 1)
FAILURE = (-4095, -1)
_END = -1

# For each entry until one with a negative number: load it, make the call, compare what it returned
# with the least and the most that is allowed, and return the address of the entry that failed.
_INSTRUCTIONS = {
    "x86_64": bytes.fromhex(
        "53"  # push rbx
        "4889fb"  # mov rbx, rdi
        "488b03"  # next: mov rax, [rbx]
        "4885c0"  # test rax, rax
        "7830"  # js end
        "488b7b08"  # mov rdi, [rbx+8]
        "488b7310"  # mov rsi, [rbx+16]
        "488b5318"  # mov rdx, [rbx+24]
        "4c8b5320"  # mov r10, [rbx+32]
        "4c8b4328"  # mov r8, [rbx+40]
        "4c8b4b30"  # mov r9, [rbx+48]
        "0f05"  # syscall
        "483b4338"  # cmp rax, [rbx+56]
        "7c0c"  # jl stop
        "483b4340"  # cmp rax, [rbx+64]
        "7f06"  # jg stop
        "4883c350"  # add rbx, 80
        "ebcc"  # jmp next
        "48894348"  # stop: mov [rbx+72], rax
        "4889d8"  # end: mov rax, rbx
        "5b"  # pop rbx
        "c3"  # ret
    ),
    "aarch64": bytes.fromhex(
        "e90300aa"  # mov x9, x0
        "280140f9"  # next: ldr x8, [x9]
        "a801f8b7"  # tbnz x8, #63, end
        "208540a9"  # ldp x0, x1, [x9, #8]
        "228d41a9"  # ldp x2, x3, [x9, #24]
        "249542a9"  # ldp x4, x5, [x9, #40]
        "010000d4"  # svc #0
        "2aad43a9"  # ldp x10, x11, [x9, #56]
        "1f000aeb"  # cmp x0, x10
        "ab000054"  # b.lt stop
        "1f000beb"  # cmp x0, x11
        "6c000054"  # b.gt stop
        "29410191"  # add x9, x9, #80
        "f4ffff17"  # b next
        "202500f9"  # stop: str x0, [x9, #72]
        "e00309aa"  # end: mov x0, x9
        "c0035fd6"  # ret
    ),
}


class _Entry(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_int64),
        ("arguments", ctypes.c_uint64 * 6),
        ("least", ctypes.c_int64),
        ("most", ctypes.c_int64),
        ("returned", ctypes.c_int64),
    ]


class SyscallList:
    """Hold the list, and the memory that its arguments point to."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._entries: list[_Entry] = []
        self._referenced: list[Any] = []
        self._array = _as_array([])
        self._pidfd = ctypes.c_int(-1)

    def add_fork(self, flags: int) -> None:
        """Add a fork as the first call of the list; the child executes the rest.

        The process must have one thread. If the child gets a new pid namespace, the process must
        be the first of its own: the C library caches the thread's id, and it is 1 in both.
        """
        self.add("clone", flags | linux.CLONE_PIDFD | linux.SIGCHLD, 0, self._pidfd, 0, 0)

    def add(self, name: str, *arguments: Any, returns: int | tuple[int, int] = 0) -> int:
        """Add a call with what it must return, a number or a range; return its index."""
        number = linux.number_of(name)
        least, most = returns if isinstance(returns, tuple) else (returns, returns)
        words = (ctypes.c_uint64 * 6)(*(self._word(argument) for argument in arguments))
        self._entries.append(_Entry(number, words, least, most))
        self._names.append(name)
        return len(self._entries) - 1

    def _word(self, argument: Any) -> int:
        """Return a number as it is, and the address of anything else."""
        if argument is None:
            return 0
        if isinstance(argument, int):
            return argument & 0xFFFFFFFFFFFFFFFF
        if isinstance(argument, bytes):
            argument = ctypes.create_string_buffer(argument)
        self._referenced.append(argument)
        return ctypes.addressof(argument)

    def prepare(self) -> None:
        """Lay the list out in memory as it is executed."""
        self._array = _as_array(self._entries)

    def set_first(self, index: int, value: int) -> None:
        """Change the first argument of a call in the prepared list."""
        self._array[index].arguments[0] = value

    def execute(self) -> int:
        """Make the calls; return how many returned what they must."""
        if len(self._array) <= len(self._entries):
            self.prepare()
        first = ctypes.addressof(self._array)
        return (_execute(first) - first) // ctypes.sizeof(_Entry)

    def execute_all(self) -> None:
        """Make the calls; raise an OSError for the first that failed."""
        done = self.execute()
        if done < len(self):
            raise self.failure(done)

    def fork(self) -> tuple[int, int, int]:
        """Fork; return (pid, pidfd, 1) to the parent, (0, -1, calls that succeeded) to the child.

        Python's own handlers of a fork are not called: they are for processes with threads.
        """
        done = self.execute()
        if done:
            return 0, -1, done
        if self.returned(0) < 0:
            raise self.failure(0)
        return self.returned(0), self._pidfd.value, 1

    def returned(self, index: int) -> int:
        """Return what the call that ended the list returned."""
        return int(self._array[index].returned)

    def failure(self, index: int) -> OSError:
        """Return an OSError that names the call that ended the list."""
        number = -self.returned(index)
        why = os.strerror(number) if number > 0 else f"it returned {-number}"
        return OSError(max(number, 0), f"{self._names[index]}: {why}")

    def __len__(self) -> int:
        return len(self._entries)


def _as_array(entries: Sequence[_Entry]) -> Any:
    return (_Entry * (len(entries) + 1))(*entries, _Entry(_END))


def _execute_in_python(first: int) -> int:
    """Execute the list that begins at an address, as the instructions would."""
    entry = _Entry.from_address(first)
    while entry.number >= 0:
        entry.returned = linux.raw_call(entry.number, entry.arguments)
        if not entry.least <= entry.returned <= entry.most:
            break
        entry = _Entry.from_address(ctypes.addressof(entry) + ctypes.sizeof(_Entry))
    return ctypes.addressof(entry)


def _loaded(instructions: bytes) -> Any:
    """Copy instructions into executable memory; return it, or None if that is not allowed."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(instructions)
        first = ctypes.c_char.from_buffer(memory)
        linux.protect(ctypes.addressof(first), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    except OSError:
        return None
    return first


_code = _loaded(_INSTRUCTIONS[linux.MACHINE]) if linux.MACHINE in _INSTRUCTIONS else None
# PYFUNCTYPE keeps the interpreter's lock: one of the calls is a fork.
_Instructions = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
_execute = _execute_in_python if _code is None else _Instructions(ctypes.addressof(_code))
