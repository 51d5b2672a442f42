"""Copy all rows of a SQLite database into an empty PostgreSQL database.

Everything is one transaction of the target: a copy that fails leaves it as it was. The caller sees
to it that no process writes to the source meanwhile. Both are at the newest revision, so the tables
are the same, and parents come before the rows that name them.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Table, make_url

from ade.domain.errors import Conflict, InvalidRequest, Unavailable
from ade.store import migrate, schema
from ade.store.dialects import dialect_for
from ade.store.dialects.postgres import connect_for_migration

ROWS_PER_READ = 1000
# What a start of ADE alone fills; every database that is in use has rows in one of these.
USED = (schema.workspaces, schema.users, schema.requests)
Told = Callable[[str, int], None]


def copy_database(
    source_url: str, target_url: str, told: Told = lambda table, rows: None
) -> dict[str, int]:
    """Copy every table, and return how many rows each has."""
    path = _source_file(source_url)
    if dialect_for(target_url)[0].name != "postgresql":
        raise InvalidRequest("The target must be a PostgreSQL database.")
    if migrate.pending(source_url):
        raise Unavailable("The database is not up to date. Run `ade db upgrade` first.")
    migrate.upgrade(target_url)
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
        closing(connect_for_migration(dialect_for(target_url)[1])) as target,
    ):
        source.execute("BEGIN")
        with target.transaction(), target.cursor() as cursor:
            _refuse_used(cursor)
            copied = {}
            for table in schema.metadata.sorted_tables:
                copied[table.name] = _copy_table(source, cursor, table)
                told(table.name, copied[table.name])
        target.autocommit = True
        target.execute("ANALYZE")
    return copied


def _source_file(url: str) -> Path:
    parsed = make_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite":
        raise InvalidRequest(
            "ADE_DATABASE_URL is not a SQLite database. Move a PostgreSQL database with"
            " `ade backup` and `ade restore`."
        )
    if not path.exists():
        raise Unavailable(f"There is no database at {path}. Is ADE_STORAGE_DATA_DIR right?")
    return path.absolute()


def _refuse_used(cursor: psycopg.Cursor[Any]) -> None:
    for table in USED:
        found = cursor.execute(
            sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table.name))
        ).fetchone()
        if found and found[0]:
            raise Conflict(
                f"The target database has rows in the table {table.name} already. Nothing is"
                " overwritten: create an empty database."
            )


def _copy_table(source: sqlite3.Connection, cursor: psycopg.Cursor[Any], table: Table) -> int:
    name = sql.Identifier(table.name)
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    # A migration may have put rows there, which the source has too.
    cursor.execute(sql.SQL("DELETE FROM {}").format(name))
    listed = ", ".join(f'"{column.name}"' for column in table.columns)
    rows = source.execute(f'SELECT {listed} FROM "{table.name}"')
    written = 0
    try:
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(name, columns)) as copy:
            while some := rows.fetchmany(ROWS_PER_READ):
                for row in some:
                    copy.write_row(row)
                written += len(some)
    except psycopg.Error as error:
        said = str(error).strip().partition("\n")[0]
        raise Unavailable(
            f"The table {table.name} cannot be copied: {said}. Nothing was copied;"
            " `ade db check` may say more."
        ) from None
    found = cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(name)).fetchone()
    if found is None or found[0] != written:
        raise Unavailable(f"The table {table.name} was not copied whole. Nothing was copied.")
    return written
