"""Another program keeps the SQLite file locked: callers wait a few seconds and learn who it is."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import make_url

from ade.domain.errors import Unavailable
from ade.store.session import Session

# The longest that a caller may wait, the one behind it as well.
WAIT_SECONDS_MAX = 9.0
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(url: str) -> Iterator[int]:
    """Hold the file's write lock in another process while inside; its id is returned."""
    path = str(make_url(url).database)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield holder.pid
        finally:
            holder.kill()


def test_a_locked_file_is_reported_soon_to_all_who_wait(sqlite_url: str) -> None:
    refusals: list[str] = []

    def write(session: Session) -> None:
        with pytest.raises(Unavailable) as refused:
            session.write(lambda transaction, items: items, [None])
        refusals.append(refused.value.detail)

    with closing(Session(sqlite_url)) as session:
        session.write(lambda transaction, items: items, [None])
        began = time.monotonic()
        with locked(sqlite_url) as pid:
            waiting = [threading.Thread(target=write, args=(session,)) for _ in range(4)]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
        assert time.monotonic() - began < WAIT_SECONDS_MAX
        assert len(refusals) == 4
        for detail in refusals:
            assert f"process {pid}" in detail
            assert "nothing was changed" in detail
        session.write(lambda transaction, items: items, [None])
