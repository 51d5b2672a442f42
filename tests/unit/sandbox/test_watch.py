"""A tree of real processes is found whole, and its time and memory are counted."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.processes import eventually, is_alive

from ade.sandbox import watch

# Two children, one of which has a child of its own; each says that it is up.
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
    found = watch.tree(family.pid)
    assert found[0] == family.pid
    assert len(set(found)) == 4


def test_memory_and_time_are_those_of_the_whole_tree(family: "subprocess.Popen[bytes]") -> None:
    usage = watch.measure(family.pid, 0, 1 << 30)
    assert usage.memory_kb >= sum(watch.resident_kb(pid) for pid in watch.tree(family.pid)) * 0.9
    assert usage.cpu_ms >= 100


def test_what_is_shared_is_counted_once_when_it_matters(family: "subprocess.Popen[bytes]") -> None:
    roughly = watch.measure(family.pid, 0, 1 << 30).memory_kb
    closely = watch.measure(family.pid, 0, 1024).memory_kb
    assert 30 << 10 < closely < roughly


def test_a_baseline_is_taken_off(family: "subprocess.Popen[bytes]") -> None:
    resident_kb = watch.resident_kb(family.pid)
    assert watch.measure(family.pid, resident_kb, 1 << 30).memory_kb < 1024


def test_the_dead_use_nothing(family: "subprocess.Popen[bytes]") -> None:
    below = watch.tree(family.pid)[1:]
    assert family.stdin is not None
    family.stdin.close()
    family.kill()
    family.wait()
    eventually(lambda: not any(map(is_alive, below)))
    usage = watch.measure(family.pid, 0, 1 << 30)
    assert (usage.memory_kb, usage.cpu_ms) == (0, 0)
