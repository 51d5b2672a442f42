"""``ade config`` on a server: list, pull, compare, activate and delete configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.remote.builds import exit_of_build
from ade.cli.remote.connect import connected
from ade.cli.remote.draft_folder import name_for, remember
from ade.cli.remote.show import console, printable, show, show_rows, status, table
from ade.cli.remote.watch import built, detachable

if TYPE_CHECKING:
    from ade.client.sync.builds import Build
    from ade.client.sync.configurations import Configuration

LIST_MAX = 200
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", file_okay=False, help="The folder of the package.")
]
Config = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The configuration; else the name in config.toml."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name or the id.")]
Version = Annotated[
    int | None, typer.Option(min=1, metavar="NUMBER", help="A version, instead of the draft.")
]


def list_configurations() -> None:
    """List the configurations of the workspace."""
    with connected() as client:
        show_rows(
            client.configurations.list(LIST_MAX),
            ("id", "name", "active version", "created"),
            lambda one: (
                one.id,
                one.name,
                None if one.active_version is None else one.active_version.sequence,
                one.created_at,
            ),
            "There is no configuration yet: `ade config push DIR` makes one.",
        )


def versions(name: Name) -> None:
    """List the versions of a configuration."""
    with connected() as client:
        configuration = client.configurations.get(name)
        active = configuration.active_version
        show_rows(
            configuration.versions(LIST_MAX),
            ("", "version", "digest", "made", "id"),
            lambda one: (
                "active" if active is not None and one.id == active.id else "",
                one.sequence,
                one.digest,
                one.created_at,
                one.id,
            ),
            "It has no version yet: `ade config activate` makes one of the draft.",
        )


def pull(folder: Folder = Path(), config: Config = None, version: Version = None) -> None:
    """Write the files of a draft, or of a version, to a folder.

    Files that the configuration does not have are left alone.
    """
    with connected() as client:
        configuration = client.configurations.get(name_for(folder, config))
        folder.mkdir(parents=True, exist_ok=True)
        changed = configuration.pull(folder, version)
        if version is None and configuration.draft_digest is not None:
            remember(folder, client, configuration, configuration.draft_digest)
        show(changed, lambda: _say_changed(changed))


def _say_changed(changed: list[str]) -> None:
    for path in changed:
        typer.echo(path)
    typer.echo(f"{len(changed)} files changed." if changed else "Nothing changed.", err=True)


def diff(folder: Folder = Path(), config: Config = None, version: Version = None) -> None:
    """Compare a folder with the draft, or with a version; exit 1 if they differ."""
    with connected() as client:
        configuration = client.configurations.get(name_for(folder, config))
        lines = configuration.diff(version, folder)
        show({"differs": bool(lines), "diff": "".join(lines)}, lambda: _draw(lines))
        raise typer.Exit(ExitCode.JOB_FAILED if lines else ExitCode.OK)


def _draw(lines: list[str]) -> None:
    from rich.text import Text

    drawn = console()
    for line in lines:
        text = Text(printable(line.rstrip("\n")), DIFF_STYLES.get(line[:1], ""))
        drawn.print(text, soft_wrap=True)


def activate(
    folder: Folder = Path(),
    config: Config = None,
    version: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="An earlier one; else one of the draft."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for its build.")] = True,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting; it goes on.")
    ] = None,
) -> None:
    """Make a version the active one as soon as its build is ready."""
    with connected(patient=True) as client:
        configuration = client.configurations.get(name_for(folder, config))
        sequence = version or configuration.make_version().sequence
        build = configuration.activate(sequence)
        if wait:
            come_back = f"Come back: ade builds wait {build.id}"
            with detachable(f"Detached: the activation goes on. {come_back}"):
                build = built(build, timeout)
        found = dict(configuration.activation(sequence))
        show(
            {"configuration_id": configuration.id, "sequence": sequence, **found},
            lambda: _say_activation(configuration, sequence, build, found),
        )
        if wait:
            raise typer.Exit(exit_of_build(build))


def _say_activation(
    configuration: Configuration, sequence: int, build: Build, found: dict[str, Any]
) -> None:
    diagnostics = [printable(str(one)) for one in found.get("diagnostics") or ()]
    rows = [
        ("configuration", configuration.name),
        ("version", sequence),
        ("build", build.id),
        ("status", status(found.get("status") or build.status)),
        ("packages", len(found.get("packages") or ())),
        *(("", line) for line in diagnostics),
    ]
    if build.error is not None:
        rows.append(("error", f"{build.error.code}: {build.error.message}"))
    table(("", ""), rows, headed=False)


def delete(name: Name) -> None:
    """Delete a configuration; runs that were accepted before still run."""
    with connected() as client:
        configuration = client.configurations.get(name)
        configuration.delete()
        show(
            configuration.raw,
            lambda: typer.echo(f"Deleted {configuration.name} ({configuration.id})."),
        )
