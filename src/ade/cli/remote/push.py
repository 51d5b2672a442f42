"""``ade config push``: replace the draft by a folder, once or whenever a file changes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.connect import connected, failed
from ade.cli.remote.draft_folder import known_digest, name_for, remember, signature
from ade.cli.remote.show import printable, show

if TYPE_CHECKING:
    from ade.client import Client
    from ade.client.answers.catalogue import DraftCheck
    from ade.client.sync.configurations import Configuration

LOOK_SECONDS = 0.5


def push(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="The package.")
    ] = Path(),
    config: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The configuration; else the name in config.toml."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the draft, whoever changed it.")
    ] = False,
    check: Annotated[
        bool, typer.Option(help="Load the draft in the sandbox of the server.")
    ] = True,
    watch: Annotated[
        bool, typer.Option("--watch", help="Push again whenever a file changes, until Ctrl-C.")
    ] = False,
) -> None:
    """Replace the draft of a configuration by a folder, and check it there.

    A configuration of this name is made if there is none. A draft that someone else has changed is
    left alone: `ade config diff` shows how it differs, and --force replaces it.
    """
    with connected() as client:
        configuration = _found_or_made(client, name_for(folder, config))
        if watch:
            _watch(client, configuration, folder, force=force, check=check)
            return
        digest = _push(client, configuration, folder, force=force)
        found = configuration.validate() if check else None
        raw = {
            "configuration_id": configuration.id,
            "name": configuration.name,
            "digest": digest,
            "check": None if found is None else found.raw,
        }
        show(raw, lambda: _say(configuration, digest, found))
        if found is not None and not found.valid:
            raise failed("The draft cannot be used as it is.")


def _found_or_made(client: Client, name: str) -> Configuration:
    from ade.client.errors import NotFound

    try:
        return client.configurations.get(name)
    except NotFound:
        made = client.configurations.create(name)
        typer.echo(f"Made the configuration {name} ({made.id}).", err=True)
        return made.refresh()


def _push(client: Client, configuration: Configuration, folder: Path, *, force: bool) -> str:
    """Push, unless someone else has changed the draft; return its digest."""
    from ade.client.core.package_files import package_digest, read_folder
    from ade.client.errors import PreconditionFailed

    base = None
    if not force:
        current = configuration.refresh().draft_digest
        own = package_digest(read_folder(folder))
        base = known_digest(folder, client, configuration)
        if current not in (own, base, package_digest({})):
            raise _changed(configuration)
        base = current
    try:
        digest = configuration.push(folder, only_if=base)
    except PreconditionFailed:
        raise _changed(configuration) from None
    remember(folder, client, configuration, digest)
    return digest


def _changed(configuration: Configuration) -> typer.Exit:
    return failed(
        f"The draft of {configuration.name} holds changes that this folder does not know."
        " `ade config diff` shows them, `ade config pull` takes them over, --force replaces them."
    )


def _watch(
    client: Client, configuration: Configuration, folder: Path, *, force: bool, check: bool
) -> None:
    """Push now and after every change; what is wrong is said, and does not end it."""
    from ade.client.errors import ClientError

    typer.echo(f"Watching {folder} for {configuration.name}; Ctrl-C ends it.", err=True)
    pushed = None
    try:
        while True:
            seen = signature(folder)
            if seen != pushed:
                try:
                    digest = _push(client, configuration, folder, force=force)
                    _say(configuration, digest, configuration.validate() if check else None)
                except ClientError as error:
                    typer.echo(f"ade: {error}", err=True)
                pushed = seen
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.OK) from None


def _say(configuration: Configuration, digest: str, found: DraftCheck | None) -> None:
    for problem in () if found is None else found.problems:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        line = f"{problem.severity}: {place}: {problem.message} {problem.hint}"
        typer.echo(printable(line.rstrip()), err=True)
    state = "" if found is None else ", ok" if found.valid else ", not valid"
    typer.echo(f"{configuration.name}: draft {digest[:19]}{state}")
