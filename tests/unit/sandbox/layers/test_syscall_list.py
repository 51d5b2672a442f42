"""The list of system calls, made by the processor and, as where that cannot be, by Python."""

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ade.sandbox.layers import linux
from ade.sandbox.layers import syscall_list as module
from ade.sandbox.layers.syscall_list import ANYTHING, FAILURE, NO_FAILURE, SyscallList

FORKING = """
import os, sys
from ade.sandbox.layers import syscall_list as module
if sys.argv[1] == "python":
    module._execute = module._execute_in_python
calls = module.SyscallList()
calls.add_fork(0)
calls.add("write", 1, b"made by the child\\n", 18, returns=18)
last = calls.add("close", 77)
pid, pidfd, made = calls.fork()
if pid == 0:
    os.write(1, f"{pidfd} {made == last} {calls.failure(made)}\\n".encode())
    os._exit(3)
ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
print(ended.si_pid == pid, ended.si_status, made)
"""


@pytest.fixture(params=["processor", "python"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(module, "_execute", module._execute_in_python)
    else:
        assert module._execute is not module._execute_in_python, (
            f"no instructions for {linux.MACHINE}"
        )
    return str(request.param)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_makes_the_calls_in_their_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    calls = SyscallList()
    calls.add("write", writing, b"one ", 4, returns=4)
    calls.add("getpid", returns=os.getpid())
    calls.add("write", writing, b"two", 3, returns=3)
    assert calls.execute() == len(calls) == 3
    assert os.read(reading, 100) == b"one two"


def test_stops_at_the_first_that_returns_something_else(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    calls = SyscallList()
    calls.add("write", writing, b"one", 3, returns=3)
    closing = calls.add("close", 1 << 20)
    calls.add("write", writing, b"never", 5, returns=5)
    assert calls.execute() == closing
    assert calls.returned(closing) == -errno.EBADF
    assert os.read(reading, 100) == b"one"
    with pytest.raises(OSError, match="close: Bad file descriptor") as caught:
        calls.execute_all()
    assert caught.value.errno == errno.EBADF


def test_a_result_must_lie_where_it_was_said_to(pipe: tuple[int, int]) -> None:
    _, writing = pipe
    for returns, goes_on in ((NO_FAILURE, False), (FAILURE, True), (ANYTHING, True), (0, False)):
        calls = SyscallList()
        calls.add("close", 1 << 20, returns=returns)
        assert (calls.execute() == 1) is goes_on, returns
    for returns, goes_on in ((NO_FAILURE, True), (FAILURE, False), ((4, 6), True), ((6, 9), False)):
        calls = SyscallList()
        calls.add("write", writing, b"five!", 5, returns=returns)
        assert (calls.execute() == 1) is goes_on, returns


def test_says_what_an_unexpected_success_returned(pipe: tuple[int, int]) -> None:
    calls = SyscallList()
    calls.add("write", pipe[1], b"one", 3, returns=FAILURE)
    with pytest.raises(OSError, match="write: it returned 3"):
        calls.execute_all()


def test_an_argument_can_be_changed_and_the_list_made_again(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    calls = SyscallList()
    writes = calls.add("write", 1 << 20, b"again ", 6, returns=6)
    calls.prepare()
    assert calls.execute() == 0
    calls.set_first(writes, writing)
    assert [calls.execute(), calls.execute()] == [1, 1]
    assert os.read(reading, 100) == b"again again "


def test_all_six_arguments_arrive(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"0123456789")
    target.write_bytes(b"")
    skip, place = ctypes.c_int64(3), ctypes.c_int64(2)
    with source.open("rb") as read, target.open("r+b") as written:
        calls = SyscallList()
        files = (read.fileno(), skip, written.fileno(), place)
        calls.add("copy_file_range", *files, 4, 1 << 20, returns=FAILURE)  # a flag that is unknown
        calls.add("copy_file_range", *files, 4, 0, returns=4)
        calls.execute_all()
    assert target.read_bytes() == b"\0\x003456"


def test_the_child_makes_the_rest_of_a_list_that_forks(way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, way], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "made by the child",
        "-1 True [Errno 9] close: Bad file descriptor",
        "True 3 1",
    ]
    assert done.stderr == ""


def test_an_unknown_call_is_refused_when_it_is_written_down() -> None:
    with pytest.raises(KeyError):
        SyscallList().add("frobnicate")
