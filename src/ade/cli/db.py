"""``ade db``: look after the database."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit

if TYPE_CHECKING:
    from ade.app.database_check import Finding
    from ade.domain.errors import Unavailable

app = typer.Typer(help="Look after the database.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("upgrade")
def upgrade(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bring the schema of the database up to date, as each start of a server does."""
    from ade.domain.errors import Unavailable
    from ade.process.compose import sole_owner
    from ade.process.data_folder import keep_private
    from ade.store import migrate

    settings = settings_or_exit()
    try:
        keep_private(settings)
        with sole_owner(settings):
            _refuse_if_away(settings.database_url)
            applied = migrate.upgrade(settings.database_url)
    except Unavailable as error:
        raise _unavailable(error) from None
    if as_json:
        typer.echo(json.dumps({"applied": applied}))
    elif applied:
        typer.echo(f"Applied {', '.join(applied)}.")
    else:
        typer.echo("The database is up to date.")


@app.command("copy")
def copy(
    to: Annotated[
        str,
        typer.Option(
            help="URL of an empty PostgreSQL database. A password in it can be seen by other users"
            " of the machine: use ~/.pgpass or PGPASSWORD."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy a SQLite database to an empty PostgreSQL database; no server may run meanwhile."""
    from ade.domain.errors import AdeError, Unavailable
    from ade.process.compose import sole_owner
    from ade.store.copy_database import copy_database

    settings = settings_or_exit()

    def say(table: str, rows: int) -> None:
        if rows and not as_json:
            typer.echo(f"{table}: {rows}", err=True)

    try:
        with sole_owner(settings):
            _refuse_if_away(to)
            copied = copy_database(settings.database_url, to, say)
    except Unavailable as error:
        raise _unavailable(error) from None
    except (AdeError, ValueError) as error:
        typer.echo(f"ade: {error}", err=True)
        raise typer.Exit(ExitCode.USAGE) from None
    if as_json:
        typer.echo(json.dumps({"rows": copied}, indent=2))
        return
    typer.echo(f"Copied {sum(copied.values())} rows of {len(copied)} tables.")
    typer.echo("Set ADE_DATABASE_URL to the new database, keep ADE_STORAGE_DATA_DIR.", err=True)


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
        raise _unavailable(error) from None
    finally:
        if store is not None:
            store.close()
    if as_json:
        typer.echo(json.dumps({"findings": [one.as_dict() for one in found]}, indent=2))
    else:
        _print(found)
    if any(one.count > one.repaired for one in found):
        raise typer.Exit(ExitCode.JOB_FAILED)


def _refuse_if_away(url: str) -> None:
    """Raise Unavailable, in one line, if there is no database at a URL."""
    from ade.store.session import Session

    session = Session(url)
    try:
        session.read(lambda reading: None)
    finally:
        session.close()


def _unavailable(error: "Unavailable") -> typer.Exit:
    typer.echo(f"ade: {error.detail}", err=True)
    return typer.Exit(ExitCode.UNAVAILABLE)


def _refuse_other_schema(pending: list[str]) -> None:
    from ade.domain.errors import Unavailable

    if pending:
        raise Unavailable(
            f"The database lacks {len(pending)} revisions of its schema, {pending[0]} first."
            " Run `ade db upgrade`, or start `ade serve`, which applies them; then check again."
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
