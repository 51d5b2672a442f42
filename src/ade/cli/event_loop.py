"""Run a server from the command line, on uvloop; an expected error is one line."""

from collections.abc import Callable, Coroutine
from typing import Any

import typer

from ade.cli.exit_codes import ExitCode


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine to its end; an expected error is one line and an exit code."""
    import asyncio

    import uvloop

    from ade.domain.errors import AdeError, Forbidden, Unauthenticated
    from ade.process.compose import collect_garbage_rarely, keep_freed_memory

    keep_freed_memory()
    collect_garbage_rarely()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    except AdeError as refused:
        typer.echo(f"ade: {refused.detail}", err=True)
        is_auth = isinstance(refused, Unauthenticated | Forbidden)
        raise typer.Exit(ExitCode.AUTH if is_auth else ExitCode.UNAVAILABLE) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.OK) from None
