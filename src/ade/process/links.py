"""Make a one-time link in the database, beside a server that runs or before it starts again."""

from collections.abc import Iterator
from contextlib import contextmanager

from ade.app.directory import Directory
from ade.domain.errors import Unavailable
from ade.process.compose import is_sqlite
from ade.process.serve import link
from ade.settings import Settings
from ade.store.migrate import pending
from ade.store.session import Session


@contextmanager
def open_database(settings: Settings) -> Iterator[Directory]:
    """Open the database beside a server that runs or before it starts again, or raise why not.

    The lock of a SQLite database is left to the server: one short transaction waits for its turn.
    """
    session = Session(settings.database_url)
    try:
        if not is_sqlite(settings):  # to look would create an empty file where there is none
            session.read(lambda reading: None)  # says in one line if there is no database
        if pending(settings.database_url):
            raise Unavailable(
                "The database is not set up for this version of ADE. Start `ade serve` first."
            )
        yield Directory(session)
    finally:
        session.close()


def make_link(settings: Settings, seconds: int, port: int) -> str:
    """Make a link that signs in once as an operator, or raise why that is not possible."""
    with open_database(settings) as directory:
        token = directory.user_sessions().make_link(seconds)
    return link(settings, port, token)
