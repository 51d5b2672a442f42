"""Files without a name are found in a real process, whichever way it holds them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ade.sandbox.open_files import unnamed_bytes

MIB = 1 << 20
FILE_BYTES_MAX = 64 * MIB
TAKE = """
import ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def deleted(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.unlink(name)
    os.write(file, bytes(4 << 20))
    return file
def up():
    os.write(1, b"up\\n")
    sys.stdin.read()
    os._exit(0)
"""
WAYS = {
    "named": ("os.write(os.open('x', os.O_RDWR | os.O_CREAT), bytes(4 << 20)); up()", 0, 0),
    "open": ("deleted('x'); up()", 4, 4),
    "open twice": ("os.dup(deleted('x')); up()", 4, 4),
    "without ever a name": (
        "os.write(os.open('.', os.O_TMPFILE | os.O_RDWR), bytes(4 << 20)); up()",
        4,
        4,
    ),
    "mapped": (
        "f = deleted('x'); libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, 0); os.close(f); up()",
        4,
        64,  # without CAP_SYS_ADMIN its size is not known
    ),
    "in a socket": (
        "one, other = socket.socketpair(); f = deleted('x'); socket.send_fds(one, [b'x'], [f]);"
        "os.close(f); up()",
        64,
        64,
    ),
    "by another thread": (
        "deleted('x'); threading.Thread(target=up).start(); libc.syscall(60, 0)",
        4,
        4,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_without_a_name_is_counted(way: str, tmp_path: Path) -> None:
    code, known_mb, unknown_mb = WAYS[way]
    if "libc.syscall" in code and os.uname().machine != "x86_64":
        pytest.skip("the number of exit is that of x86_64")
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", TAKE + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        found = unnamed_bytes(process.pid, tmp_path, -1, FILE_BYTES_MAX)
        process.kill()
    expected_mb = known_mb if os.geteuid() == 0 else unknown_mb
    assert found == pytest.approx(expected_mb * MIB, rel=0.02)


def test_a_process_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert unnamed_bytes(process.pid, tmp_path, -1, FILE_BYTES_MAX) == 0
    assert unnamed_bytes(process.pid, tmp_path, -1, FILE_BYTES_MAX) == 0
