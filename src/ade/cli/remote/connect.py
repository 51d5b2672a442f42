"""Connect to the chosen server; whatever goes wrong is one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.choices import choices

if TYPE_CHECKING:
    from ade.client import Client


CLEAN_UP_SECONDS = 3.0
# What is said if the process ends before the command could say it.
unsaid: list[str] = []


@contextmanager
def connected(
    *, patient: bool = False, on_busy: Callable[[float], None] | None = None
) -> Iterator[Client]:
    """Hand out a client of the chosen server and workspace.

    With `patient`, requests wait for as long as the queue is full.
    """
    with failures_shown(), ending_at_ctrl_c():
        spare_the_programs_of_httpx()
        from ade.client import Client, RetryPolicy

        chosen = choices()
        retry = RetryPolicy(busy_seconds_max=None, on_busy=on_busy) if patient else RetryPolicy()
        with Client(profile=chosen.profile, workspace=chosen.workspace, retry=retry) as client:
            yield client


@contextmanager
def failures_shown() -> Iterator[None]:
    """End with one line and an exit code instead of a traceback."""
    from ade.client.errors import ClientError, Unauthenticated

    try:
        yield
    except ClientError as error:
        hint = " `ade login URL` keeps another one." if isinstance(error, Unauthenticated) else ""
        raise failed(f"{error}{hint}", code_of(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except (BrokenPipeError, typer.Exit):
        raise
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise failed(what, ExitCode.USAGE) from None


def failed(text: str, code: ExitCode = ExitCode.JOB_FAILED) -> typer.Exit:
    """Print one line on stderr and return what ends the command."""
    typer.echo(f"ade: {text}", err=True)
    return typer.Exit(code)


def code_of(error: Exception) -> ExitCode:
    """Return the exit code for an exception of the client."""
    from ade.client import errors

    match error:
        case errors.NotFound():
            return ExitCode.NOT_FOUND
        case errors.Unauthenticated() | errors.Forbidden():
            return ExitCode.AUTH
        case errors.ServerUnreachable() | errors.NotAnAdeServer() | errors.TransferError():
            return ExitCode.UNAVAILABLE
        case errors.QueueFull() | errors.TooManyRequests() | errors.Unavailable():
            return ExitCode.UNAVAILABLE
        case errors.SafeMode() | errors.StorageFull():
            return ExitCode.UNAVAILABLE
        case errors.WaitTimedOut():
            return ExitCode.WAIT_TIMED_OUT
        case errors.Conflict() | errors.PreconditionFailed() | errors.JobEndedBadly():
            return ExitCode.JOB_FAILED
        case errors.Problem(status=status) if status >= 500:
            return ExitCode.UNAVAILABLE
    return ExitCode.USAGE


def spare_the_programs_of_httpx() -> None:
    """Keep httpx from importing its own command line, which costs 100 ms where rich is there."""
    if "httpx" not in sys.modules:
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


@contextmanager
def ending_at_ctrl_c() -> Iterator[None]:
    """End the process a while after Ctrl-C, whatever its clean-up waits for.

    The interruption may come while a lock of the connections is taken; it is never released then,
    and closing them would wait for it for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, CLEAN_UP_SECONDS)
        raise KeyboardInterrupt

    def end(number: int, frame: object) -> None:
        os.write(sys.stderr.fileno(), "".join(f"{line}\n" for line in unsaid).encode())
        os._exit(ExitCode.INTERRUPTED)

    interrupted = signal.signal(signal.SIGINT, interrupt)
    alarmed = signal.signal(signal.SIGALRM, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarmed)
        signal.signal(signal.SIGINT, interrupted)


def come_back(*lines: str) -> typer.Exit:
    """Say after Ctrl-C how to come back to what goes on, and return what ends the command."""
    unsaid.clear()
    for line in lines:
        typer.echo(line, err=True)
    sys.stderr.flush()
    return typer.Exit(ExitCode.INTERRUPTED)


def is_watched() -> bool:
    """Tell whether someone looks at stderr, where progress is shown."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
