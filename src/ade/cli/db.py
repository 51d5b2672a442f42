"""``ade db``: look after the database."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.app.database_check import Finding

app = typer.Typer(help="Look after the database.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("check")
def check(
    repair: Annotated[bool, typer.Option("--repair", help="Repair what is safe.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find rows that contradict each other; exit 1 if there are any that were not repaired."""
    from pathlib import Path

    from ade.app.database_check import check_database
    from ade.domain.errors import Unavailable
    from ade.storage.blob_keys import key_of
    from ade.store import migrate
    from ade.store.session import Session

    settings = settings_or_exit()
    # With object storage, the folder is only a cache.
    folder = None if settings.blob_url else Path(settings.blobs_dir)
    store = None
    try:
        _refuse_other_schema(migrate.pending(settings.database_url))
        store = Session(settings.database_url)
        path = None if folder is None else lambda digest: folder / key_of(digest)
        found = list(check_database(store, repair=repair, blob_path=path))
    except Unavailable as error:
        typer.echo(f"ade: {error.detail}", err=True)
        raise typer.Exit(ExitCode.UNAVAILABLE) from None
    finally:
        if store is not None:
            store.close()
    if as_json:
        typer.echo(json.dumps({"findings": [one.as_dict() for one in found]}, indent=2))
    else:
        _print(found)
    if any(one.count > one.repaired for one in found):
        raise typer.Exit(ExitCode.JOB_FAILED)


def _refuse_other_schema(pending: list[str]) -> None:
    from ade.domain.errors import Unavailable

    if pending:
        raise Unavailable(
            f"The database lacks {len(pending)} revisions of its schema, {pending[0]} first."
            " Start `ade serve` once, which applies them, then check again."
        )


def _print(found: "list[Finding]") -> None:
    if not found:
        typer.echo("The database is consistent.")
    for one in found:
        repaired = f", {one.repaired} repaired" if one.repaired else ""
        typer.echo(f"{one.name}: {one.count}{repaired} ({one.purpose})")
        typer.echo(f"  {one.advice}")
        more = " ..." if one.count > len(one.ids) else ""
        typer.echo(f"  {' '.join(one.ids)}{more}")
