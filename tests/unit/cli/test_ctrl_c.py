"""Ctrl-C ends a command in time, also where the interruption left a lock taken."""

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
from ade.cli.remote import connect
from ade.cli.remote.watch import detachable
connect.CLEAN_UP_SECONDS = 0.1
taken = threading.Lock()
taken.acquire()
with connect.failures_shown(), connect.ending_at_ctrl_c(), detachable("come back"):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
    finally:
        {clean_up}
"""


def run(clean_up: str) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(clean_up=clean_up)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )


def test_a_clean_up_that_waits_for_ever_is_cut_off() -> None:
    ended = run("taken.acquire()")
    assert (ended.returncode, ended.stderr) == (130, "come back\n")


def test_a_clean_up_that_ends_is_not() -> None:
    ended = run("print('closed')")
    assert ended.stdout == "closed\n"
    assert "come back\n" in ended.stderr
