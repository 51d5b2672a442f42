"""A tree of real processes is found whole, and its time and memory are counted."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.processes import eventually, is_alive

from ade.sandbox import usage

# Two children, one of which has its own child; each says that it is up.
TREE = """
import os, sys
def up():
    os.write(1, b"up\\n")
    sys.stdin.read()
    os._exit(0)
for number in range(2):
    if os.fork() == 0:
        if number == 0 and os.fork() == 0:
            up()
        up()
kept = bytearray(b"x") * (30 << 20)
until = os.times().user + 0.1
while os.times().user < until:
    pass
up()
"""


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with three below it."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-I", "-c", TREE], stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert process.stdin is not None
    for _ in range(4):
        process.stdout.readline()
    yield process
    process.stdin.close()
    process.stdout.close()
    process.kill()
    process.wait()


def test_a_tree_is_found_whole(family: "subprocess.Popen[bytes]") -> None:
    found = usage.tree(family.pid)
    assert found[0] == family.pid
    assert len(set(found)) == 4


def _watch(pid: int, limit_kb: int = 1 << 30, baseline_kb: int = 0) -> usage.UsageMonitor:
    eye = usage.UsageMonitor(pid, limit_kb)
    eye.baseline_kb = baseline_kb
    return eye


def test_memory_and_time_are_those_of_the_whole_tree(family: "subprocess.Popen[bytes]") -> None:
    used = usage.at_once(_watch(family.pid).measure())
    assert used.memory_kb >= sum(usage.resident_kb(pid) for pid in usage.tree(family.pid)) * 0.9
    assert used.cpu_ms >= 100


def test_what_is_shared_is_counted_once_when_it_matters(family: "subprocess.Popen[bytes]") -> None:
    roughly = usage.at_once(_watch(family.pid).measure()).memory_kb
    closely = usage.at_once(_watch(family.pid, limit_kb=1024).measure()).memory_kb
    assert 30 << 10 < closely < roughly


def test_what_was_there_at_the_beginning_is_taken_off(family: "subprocess.Popen[bytes]") -> None:
    assert usage.at_once(usage.UsageMonitor(family.pid, 1 << 30).measure()).memory_kb < 1024


def test_a_program_that_was_started_afresh_is_counted_whole() -> None:
    source = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    other = [sys.executable, "-I", "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-I", "-c", source, *other], stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        below = usage.tree(process.pid)[1:]
        eye = _watch(process.pid, baseline_kb=1 << 30)
        assert (
            usage.at_once(eye.measure()).memory_kb >= 0.9 * sum(map(usage.resident_kb, below)) > 0
        )
        process.kill()
    eventually(lambda: not any(map(is_alive, below)))


def test_the_time_of_who_died_unnoticed_is_remembered(family: "subprocess.Popen[bytes]") -> None:
    eye = _watch(family.pid)
    before = usage.at_once(eye.measure()).cpu_ms
    assert family.stdin is not None
    family.stdin.close()
    family.kill()
    family.wait()
    eventually(lambda: usage.tree(family.pid) == [family.pid])
    assert usage.at_once(eye.measure()).cpu_ms >= before >= 100
