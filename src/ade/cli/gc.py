"""``ade gc --dry-run``: list what servers will delete, and why."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.app.garbage import Garbage

LISTED_MAX = 1000


def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be deleted; delete nothing.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, help="How many to list; the sums count all of them.")
    ] = LISTED_MAX,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what servers will delete with their next collection, and why."""
    from ade.app.garbage import find_garbage
    from ade.domain.errors import Unavailable
    from ade.storage import Blobs
    from ade.store import migrate
    from ade.store.session import Session

    if not dry_run:
        typer.echo(
            "ade: Servers delete by themselves, every ten minutes. Use --dry-run to see what.",
            err=True,
        )
        raise typer.Exit(ExitCode.USAGE)
    settings = settings_or_exit()
    store = Session(settings.database_url)
    try:
        if migrate.pending(settings.database_url):
            raise Unavailable("The database is not up to date. Run `ade db upgrade` first.")
        found = list(
            find_garbage(
                store,
                Blobs(settings.blobs_dir),
                settings.jobs_dir,
                settings.retain_days,
                now_us=store.change(lambda tx: tx.now_us),  # the time of the database
            )
        )
    except Unavailable as error:
        typer.echo(f"ade: {error.detail}", err=True)
        raise typer.Exit(ExitCode.UNAVAILABLE) from None
    finally:
        store.close()
    sums = _sums(found)
    if as_json:
        listed = [one.as_dict() for one in found[:limit]]
        typer.echo(json.dumps({"items": listed, "sums": sums}, indent=2))
        return
    for one in found[:limit]:
        size = "" if one.size_bytes is None else f" {one.size_bytes} bytes"
        typer.echo(f"{one.what} {one.name}{size}: {one.reason}")
    if len(found) > limit:
        typer.echo(f"... and {len(found) - limit} more")
    for what, (count, size_bytes) in sums.items():
        typer.echo(f"{what}: {count}, {size_bytes} bytes", err=True)
    if not found:
        typer.echo("Nothing would be deleted.")


def _sums(found: "list[Garbage]") -> dict[str, list[int]]:
    """Count what was found and add up its bytes, by what it is."""
    sums: dict[str, list[int]] = {}
    for one in found:
        of = sums.setdefault(one.what, [0, 0])
        of[0] += 1
        of[1] += one.size_bytes or 0
    return sums
