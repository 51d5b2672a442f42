"""Wait for jobs, runs and builds: with a bar if someone watches, and Ctrl-C only detaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ade.cli.remote.connect import come_back, is_watched, unsaid
from ade.cli.remote.show import console, printable

if TYPE_CHECKING:
    from rich.progress import Progress

WORD_COLUMNS_MAX = 60


@contextmanager
def detachable(*lines: str) -> Iterator[None]:
    """End at Ctrl-C with what goes on and how to come back to it."""
    unsaid[:] = lines
    try:
        yield
    except KeyboardInterrupt:
        raise come_back(*lines) from None
    finally:
        unsaid.clear()


@contextmanager
def bars(*, sizes: bool = False) -> Iterator[Progress | None]:
    """Show bars on stderr while inside; None if nobody watches."""
    if not is_watched():
        yield None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    amount = [DownloadColumn(), TransferSpeedColumn()] if sizes else [MofNCompleteColumn()]
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *amount,
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        yield progress


@contextmanager
def uploading(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how much of a file was sent; None if nobody watches."""
    with bars(sizes=True) as progress:
        if progress is None:
            yield None
            return
        bar = progress.add_task(short(name), total=None)

        def sent(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)

        yield sent


def watched(one: Any, timeout_seconds: float | None = None) -> Any:
    """Wait for the end of a job or a run and return it; show how far it is."""
    with bars() as progress:
        if progress is None:
            say_waiting(one)
            return one.wait(timeout_seconds)
        bar = progress.add_task(words_of(one), total=None)
        if timeout_seconds is not None:
            return one.wait(timeout_seconds)
        for event in one.events():
            if event.event == "worker.progress":
                total = event.data.get("total") or None
                words = short(str(event.data.get("message") or "running"))
                done = event.data.get("done") or 0
                progress.update(bar, description=words, completed=done, total=total)
            else:
                progress.update(bar, description=_words_of_event(event))
        return one.refresh()


def say_waiting(one: Any) -> None:
    """Say where nobody watches that it is waited for; a log shows then what takes so long."""
    if not one.has_ended:
        typer.echo(f"Waiting for {one.id}; Ctrl-C leaves it running.", err=True)


def built(build: Any, timeout_seconds: float | None = None) -> Any:
    """Wait for the end of a build and return it; show the last line of its log."""
    with bars() as progress:
        if progress is None:
            say_waiting(build)
        if progress is None or build.job_id is None or timeout_seconds is not None:
            return build.wait(timeout_seconds)
        bar = progress.add_task(f"build {build.status}", total=None)
        for piece in build.job.logs():
            if lines := piece.text.strip().splitlines():
                progress.update(bar, description=short(lines[-1]))
    return build.wait()


def words_of(one: Any) -> str:
    """Say what a job or a run is doing."""
    if one.waiting is not None:
        return short(f"{one.status}: {one.waiting.detail or one.waiting.reason}")
    return str(one.status)


def _words_of_event(event: Any) -> str:
    word = event.event.removeprefix("job.").replace("_", " ")
    reason = event.data.get("reason")
    return short(f"{word}: waits for {reason}" if word == "queued" and reason else word)


def short(text: str) -> str:
    """Cut a text so that the bar beside it has room."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= WORD_COLUMNS_MAX else f"{line[: WORD_COLUMNS_MAX - 1]}…"
