"""Ctrl-C ends a command in time, also where the interruption left a lock taken."""

import subprocess
import sys

PROGRAM = """
import os, signal, sys, threading, time
import typer
from ade.cli.remote import connect
from ade.cli.remote.watch import detachable
connect.CLEAN_UP_SECONDS = {seconds}
taken = threading.Lock()
taken.acquire()
try:
    with connect.failures_shown(), connect.ending_at_ctrl_c(), detachable("come back"):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(600)
        finally:
            {clean_up}
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


def run(clean_up: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    program = PROGRAM.format(clean_up=clean_up, seconds=seconds)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )


def test_a_clean_up_that_waits_for_ever_is_cut_off() -> None:
    ended = run("taken.acquire()", 0.1)
    assert (ended.returncode, ended.stderr) == (130, "come back\n")


def test_a_clean_up_that_ends_is_not() -> None:
    ended = run("print('closed')", 600)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "closed\n", "come back\n")
