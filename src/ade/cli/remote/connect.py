"""Connect to the chosen server; whatever goes wrong is one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.choices import choices

if TYPE_CHECKING:
    from ade.client import Client


@contextmanager
def connected(
    *, patient: bool = False, on_busy: Callable[[float], None] | None = None
) -> Iterator[Client]:
    """Hand out a client of the chosen server and workspace.

    With `patient`, requests wait for as long as the queue is full.
    """
    with failures_shown():
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


def come_back(*lines: str) -> typer.Exit:
    """Say after Ctrl-C how to come back to what goes on, and return what ends the command."""
    for line in lines:
        typer.echo(line, err=True)
    sys.stderr.flush()
    return typer.Exit(ExitCode.INTERRUPTED)


def is_watched() -> bool:
    """Tell whether someone looks at stderr, where progress is shown."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
