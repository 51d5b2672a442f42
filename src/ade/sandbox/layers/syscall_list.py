"""A list of system calls, written down once and made many times.

A forked interpreter copies a page of memory for almost every object that it touches, so the way
from the fork to a job that waits for its order is not run by it: the list is made by a few
instructions of the processor itself. Each call is written down with what it must return; at the
first that returns anything else the list ends. Where the instructions are not known, or memory may
not hold any, Python makes the same list call by call.
"""

import ctypes
import mmap
import os

from ade.sandbox.layers import linux

ANYTHING = (-(1 << 63), (1 << 63) - 1)
NO_FAILURE = (0, (1 << 63) - 1)
FAILURE = (-4095, -1)
_END = -1

# For each entry until one with a negative number: load it, call, compare what came back with the
# least and the most that it may be, and leave with the address of the entry where it was neither.
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
    """Hold the list, and what its arguments point to."""

    def __init__(self):
        self._names = []
        self._entries = []
        self._kept = []
        self._written = _written([])
        self._pidfd = ctypes.c_int(-1)

    def add_fork(self, flags):
        """Write down, as the first of the list, a fork: the child makes the rest of it.

        Only for a process with one thread, that is the first of its own pid namespace if the child
        gets a new one: the C library remembers its thread's number, and 1 is true in both.
        """
        self.add("clone", flags | linux.CLONE_PIDFD | linux.SIGCHLD, 0, self._pidfd, 0, 0)

    def add(self, name, *arguments, returns=0):
        """Write down a call with what it must return: a number, or the least and the most."""
        number = linux.number_of(name)
        least, most = returns if isinstance(returns, tuple) else (returns, returns)
        words = (ctypes.c_uint64 * 6)(*(self._word(argument) for argument in arguments))
        self._entries.append(_Entry(number, words, least, most))
        self._names.append(name)
        return len(self._entries) - 1

    def _word(self, argument):
        """Return a number as it is, and of everything else its address."""
        if argument is None:
            return 0
        if isinstance(argument, int):
            return argument & 0xFFFFFFFFFFFFFFFF
        if isinstance(argument, bytes):
            argument = ctypes.create_string_buffer(argument)
        self._kept.append(argument)
        return ctypes.addressof(argument)

    def write(self):
        """Lay the list out in memory, as it is made."""
        self._written = _written(self._entries)

    def set_first(self, index, value):
        """Change the first argument of a call in the written list."""
        self._written[index].arguments[0] = value

    def make(self):
        """Make the calls; return how many went as they must."""
        if len(self._written) <= len(self._entries):
            self.write()
        first = ctypes.addressof(self._written)
        return (_make(first) - first) // ctypes.sizeof(_Entry)

    def make_all(self):
        """Make the calls; raise what the first that failed says."""
        made = self.make()
        if made < len(self):
            raise self.failure(made)

    def fork(self):
        """Fork; return (pid, pidfd, 1) to the parent, (0, -1, how many went well) to the child.

        Python is not told of it, which it need not be while there is one thread.
        """
        made = self.make()
        if made:
            return 0, -1, made
        if self.returned(0) < 0:
            raise self.failure(0)
        return self.returned(0), self._pidfd.value, 1

    def returned(self, index):
        """Return what the call that ended the list returned."""
        return self._written[index].returned

    def failure(self, index):
        """Say which call ended the list, and how, as an OSError."""
        number = -self.returned(index)
        why = os.strerror(number) if number > 0 else f"it returned {-number}"
        return OSError(max(number, 0), f"{self._names[index]}: {why}")

    def __len__(self):
        return len(self._entries)


def _written(entries):
    return (_Entry * (len(entries) + 1))(*entries, _Entry(_END))


def _make_by_python(first):
    """Make the list that begins at an address, as the instructions would."""
    entry = _Entry.from_address(first)
    while entry.number >= 0:
        entry.returned = linux.raw_call(entry.number, entry.arguments)
        if not entry.least <= entry.returned <= entry.most:
            break
        entry = _Entry.from_address(ctypes.addressof(entry) + ctypes.sizeof(_Entry))
    return ctypes.addressof(entry)


def _placed(instructions):
    """Put instructions into memory of their own; return where, or None where that may not be."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(instructions)
        first = ctypes.c_char.from_buffer(memory)
        linux.protect(ctypes.addressof(first), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    except OSError:
        return None
    return first


_place = _placed(_INSTRUCTIONS[linux.MACHINE]) if linux.MACHINE in _INSTRUCTIONS else None
# Of the kind that keeps the interpreter's lock: one of the calls is a fork.
_Instructions = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
_make = _make_by_python if _place is None else _Instructions(ctypes.addressof(_place))
