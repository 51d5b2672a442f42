"""End a process as Python ends one: exit status, threads, exit handlers.

A job's process never returns to the code that started the interpreter, so Python's own steps at the
end of a program are done here.
"""

import atexit
import os
import sys
import threading
from contextlib import suppress
from types import TracebackType

ENGINE = os.path.dirname(os.path.abspath(__file__)) + os.sep
FAILED = 1


class FirstProcessOnly:
    """Let only the process that entered the block leave it.

    A process that was forked in the block ends at its end, as a script would: it must not report
    for the job.
    """

    def __enter__(self) -> None:
        self._first = os.getpid()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if os.getpid() != self._first:
            _end_process(error)


def exit_status(end: SystemExit) -> int:
    """Return the status that `sys.exit` asks for."""
    if end.code is None:
        return 0
    return int(end.code) if isinstance(end.code, int) else FAILED


def exit_message(end: SystemExit) -> str | None:
    """Return the text of `sys.exit("text")`, which Python prints."""
    if end.code is None or isinstance(end.code, int):
        return None
    try:
        return str(end.code)
    except Exception as error:
        return f"[the message could not be read: {type(error).__name__}]"


def print_exit_message(end: SystemExit) -> None:
    """Print the text of `sys.exit("text")` to stderr, as Python does."""
    if (message := exit_message(end)) is not None:
        with suppress(Exception):  # the job may have closed or replaced the stream
            sys.stderr.write(f"{message}\n")


def call_excepthook(error: BaseException) -> None:
    """Call `sys.excepthook` with the traceback of the job's own code."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(ENGINE):
        traceback = traceback.tb_next
    with suppress(BaseException):
        sys.excepthook(type(error), error, traceback)


def wait_for_threads() -> None:
    """Wait for the threads that are not daemons, except those of executors.

    The idle threads of an executor wait for more work until the process ends.
    """
    if threading.active_count() == 1:
        return
    executors = sys.modules.get("concurrent.futures.thread")
    workers = getattr(executors, "_threads_queues", ())
    own = threading.current_thread()
    while waited_for := [
        thread
        for thread in threading.enumerate()
        if thread is not own and not thread.daemon and thread not in workers
    ]:
        for thread in waited_for:
            thread.join()


def run_exit_handlers() -> None:
    """Let executors finish their work, wait for all threads, and call the `atexit` handlers."""
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with suppress(BaseException):  # their errors are printed, and change nothing
        atexit._run_exitfuncs()
    flush_streams()


def flush_streams() -> None:
    """Write out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the job may have closed or replaced the stream
            stream.flush()


def _end_process(error: BaseException | None) -> None:
    status = 0
    try:
        if isinstance(error, SystemExit):
            status = exit_status(error)
            print_exit_message(error)
        elif error is not None:
            status = FAILED
            call_excepthook(error)
        run_exit_handlers()
    finally:
        os._exit(status & 0xFF)
