"""``ade backup`` and ``ade restore``: copy the database and its blobs, and bring them back."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.progress import progress
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.domain.errors import AdeError
    from ade.settings import Settings
    from ade.storage.blobs import Blobs

KEPT_MAX = 1000
Folder = Annotated[Path, typer.Argument(help="The folder of the backups.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def backup(
    folder: Folder,
    keep: Annotated[
        int, typer.Option(min=1, max=KEPT_MAX, help="Delete all but the newest so many backups.")
    ] = 7,
    as_json: AsJson = False,
) -> None:
    """Back up the database and its blobs, beside servers that run; exit 1 if blobs are lost.

    A second run into the same folder copies only blobs that are new.
    """
    from dataclasses import asdict

    from ade.app.backup import back_up
    from ade.domain.errors import AdeError
    from ade.domain.units import MIB

    settings = settings_or_exit()
    try:
        with progress("copying blobs") as told:
            done = back_up(settings.database_url, _blobs(settings), folder, keep=keep, told=told)
    except AdeError as error:
        raise _refused(error) from None
    made = done.manifest
    if as_json:
        typer.echo(json.dumps({"folder": str(done.folder), **asdict(made)}, indent=2))
    else:
        size = f"{done.bytes_copied / MIB:.1f} MiB"
        typer.echo(f"Backed up to {done.folder}: {made.database} and {made.blobs} blobs.")
        typer.echo(f"{done.blobs_copied} blobs ({size}) were new.", err=True)
    if made.missing:
        typer.echo(
            f"ade: {len(made.missing)} blobs that the database names are not in the storage or are"
            f" damaged, {made.missing[0]} first. `ade db check` says which artifacts need them.",
            err=True,
        )
        raise typer.Exit(ExitCode.JOB_FAILED)


def restore(
    folder: Folder,
    at: Annotated[
        str | None, typer.Option(help="Which backup of the folder; else the newest.")
    ] = None,
    verify_only: Annotated[
        bool, typer.Option("--verify", help="Verify every digest and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a backup back into an empty database; nothing is ever overwritten."""
    from dataclasses import asdict

    from ade.app.restore import choose_generation, verify
    from ade.app.restore import restore as bring_back
    from ade.domain.errors import AdeError
    from ade.process.compose import sole_owner
    from ade.process.data_folder import keep_private

    settings = settings_or_exit()
    try:
        generation = choose_generation(folder, at)
        if verify_only:
            made = verify(generation)
        else:
            keep_private(settings)
            with sole_owner(settings), progress("copying blobs") as told:
                url, blobs = settings.database_url, _blobs(settings, local=True)
                made = bring_back(url, blobs, generation, told=told).manifest
    except AdeError as error:
        raise _refused(error) from None
    if as_json:
        typer.echo(json.dumps({"folder": str(generation), **asdict(made)}, indent=2))
        return
    what = f"{made.database} and {made.blobs} blobs"
    if verify_only:
        typer.echo(f"{generation} is whole: {what}.")
    else:
        typer.echo(f"Restored {generation}: {what}.")
        typer.echo(
            "Check it with `ade db check`, then start `ade serve`; with ADE_SAFE_MODE=true, no job"
            " runs before you have looked.",
            err=True,
        )


def _blobs(settings: "Settings", *, local: bool = False) -> "Blobs":
    from ade.storage import Blobs
    from ade.storage.remote_blobs import RemoteBlobs
    from ade.storage.s3 import S3ObjectStore

    if local or settings.blob_url is None:
        return Blobs(settings.blobs_dir)
    return Blobs(settings.blobs_dir, RemoteBlobs(S3ObjectStore(settings.blob_url)))


def _refused(error: "AdeError") -> typer.Exit:
    from ade.domain.errors import Conflict, NotFound

    typer.echo(f"ade: {error.detail}", err=True)
    if isinstance(error, NotFound):
        return typer.Exit(ExitCode.NOT_FOUND)
    return typer.Exit(ExitCode.USAGE if isinstance(error, Conflict) else ExitCode.UNAVAILABLE)
