"""Code that misbehaves in a child, in one way at a time: `main` does what `do` names."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

FOREVER_SECONDS = 3600


def main(inputs: dict[str, Any], channel: Any) -> Any:
    """Do what is asked; children say their process id first, as a message of progress."""
    return {
        "tell_pid": _tell_pid,
        "ignore_sigterm": _ignore_sigterm,
        "ignore_the_question": _ignore_the_question,
        "fork": _fork,
        "fork_and_return": _fork_and_return,
        "hold_the_pipe": _hold_the_pipe,
        "spin": _spin,
        "boast": _boast,
        "babble": _babble,
        "last_word": _last_word,
        "tell_much": _tell_much,
        "write_much": _write_much,
        "import": _import,
        "linger_once": _linger_once,
        "print_and_stay": _print_and_stay,
    }[inputs["do"]](inputs, channel)


def _tell_pid(inputs: dict[str, Any], channel: Any) -> None:
    channel.progress(0, 1, str(os.getpid()))
    time.sleep(FOREVER_SECONDS)


def _print_and_stay(inputs: dict[str, Any], channel: Any) -> None:
    if "file" in inputs:
        with open(f"artifacts/{inputs['file']}", "w", encoding="utf-8") as file:
            file.write("kept")
    sys.stdout.write(f"{inputs['text']}\n")  # not flushed by itself
    time.sleep(inputs.get("seconds", FOREVER_SECONDS))


def _ignore_sigterm(inputs: dict[str, Any], channel: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _tell_pid(inputs, channel)


def _ignore_the_question(inputs: dict[str, Any], channel: Any) -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    _tell_pid(inputs, channel)


def _fork(inputs: dict[str, Any], channel: Any) -> None:
    grandchild = subprocess.Popen(["sleep", str(FOREVER_SECONDS)])
    channel.progress(0, 1, f"{os.getpid()} {grandchild.pid}")
    time.sleep(FOREVER_SECONDS)


def _fork_and_return(inputs: dict[str, Any], channel: Any) -> int:
    return subprocess.Popen(["sleep", str(FOREVER_SECONDS)]).pid  # it holds stdout and stderr open


def _hold_the_pipe(inputs: dict[str, Any], channel: Any) -> int:
    # In its own session, the group's kill does not find it.
    return subprocess.Popen(["sleep", "60"], start_new_session=True).pid


def _spin(inputs: dict[str, Any], channel: Any) -> None:
    while True:
        pass


def _boast(inputs: dict[str, Any], channel: Any) -> str:
    return "x" * inputs["size_bytes"]


def _last_word(inputs: dict[str, Any], channel: Any) -> None:
    channel._stream.write(inputs["words"] + "\n")
    channel._stream.flush()
    os._exit(1)


def _babble(inputs: dict[str, Any], channel: Any) -> str:
    channel._stream.write(inputs["words"] + "\n")
    sys.stderr.write("a word to stderr\n")
    return "done"


def _tell_much(inputs: dict[str, Any], channel: Any) -> str:
    for step in range(inputs["steps"]):
        channel.progress(step + 1, inputs["steps"])
        time.sleep(inputs["pause_seconds"])
    return "done"


def _write_much(inputs: dict[str, Any], channel: Any) -> None:
    with open("large", "wb") as file:
        file.write(b"x" * inputs["size_bytes"])


def _import(inputs: dict[str, Any], channel: Any) -> None:
    __import__(inputs["module"])


def _linger_once(inputs: dict[str, Any], channel: Any) -> str:
    if os.path.exists("been-here"):
        sys.stdout.write("again\n")
        return "the second time"
    with open("been-here", "w"):
        _tell_pid(inputs, channel)
    return "never"
