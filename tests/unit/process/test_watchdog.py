"""A process that was told to end does so, whatever hangs in it."""

import signal
import subprocess
import sys
import time

import pytest
from tests.processes import eventually, is_alive

ENDING_SECONDS = 0.5
PROGRAM = """
import asyncio, subprocess, sys, threading, time
from ade.process import serve
from ade.settings import Settings

serve.ENDING_SECONDS = %g

def hang():
    while True:
        time.sleep(600)

async def main(what):
    child = subprocess.Popen(["sleep", "600"])
    ended = asyncio.Event()
    serve.on_signals(Settings(drain_grace_seconds=0), ended.set)
    print(child.pid, flush=True)
    if what == "the event loop":
        hang()
    if what == "a task":
        await asyncio.Event().wait()
    if what == "a thread":
        asyncio.get_running_loop().run_in_executor(None, hang)
    if what == "the exit":
        threading.Thread(target=hang, name="hanging").start()
    await ended.wait()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("what", ["the event loop", "a task", "a thread", "the exit"])
def test_a_process_ends_although_something_hangs(what: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM % ENDING_SECONDS, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            child = int(process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert process.wait(20) == 1
        finally:
            process.kill()
        said = process.stdout.read()
    assert time.monotonic() - began >= ENDING_SECONDS
    assert "did not end in time" in said
    assert "MainThread" in said
    eventually(lambda: not is_alive(child))
