"""The writing connection of a session in the hands of a test."""

import threading
from collections.abc import Callable
from typing import Any

from ade.store.port import Transaction
from ade.store.session import Session


class Gathering:
    """Hold the writer up while calls gather, and count the transactions that they become."""

    def __init__(self, store: Session) -> None:
        self.store = store
        self.commits = 0
        commit = store._group._commit

        def counted(work: Callable[[Transaction], Any]) -> Any:
            self.commits += 1
            return commit(work)

        store._group._commit = counted

    def run(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls that gather in one group; return outcomes, exceptions among them."""
        holds, held = threading.Event(), threading.Event()

        def hold(tx: Transaction, items: list[None]) -> list[None]:
            held.set()
            assert holds.wait(30)
            return items

        outcomes: list[Any] = [None] * len(calls)

        def make(index: int) -> None:
            try:
                outcomes[index] = calls[index]()
            except Exception as error:
                outcomes[index] = error

        holder = threading.Thread(target=self.store.write, args=(hold, [None]))
        holder.start()
        assert held.wait(30)
        threads = [threading.Thread(target=make, args=(index,)) for index in range(len(calls))]
        for index, thread in enumerate(threads):
            thread.start()
            while len(self.store._group._calls) <= index:  # in this order, all before the release
                pass
        self.commits = 0
        holds.set()
        for thread in (holder, *threads):
            thread.join()
        return outcomes


class BreaksAtCommit:
    """Imitate a connection that breaks on demand, before or after the commit arrives."""

    def __init__(self, connection: Any, *, arrives: bool) -> None:
        self._connection = connection
        self._arrives = arrives
        self.armed = False
        self._broken = False

    def cursor(self) -> "BreaksAtCommit":
        self._cursor = self._connection.cursor()
        return self

    def execute(self, sql: Any, *args: Any, **how: Any) -> Any:
        if self._broken:
            raise ConnectionError("broken")
        if self.armed and (sql == "COMMIT" or sql[-6:] == b"COMMIT"):
            self._cursor.execute("COMMIT" if self._arrives else "ROLLBACK")
            self._broken = True
            self._connection.close()
            raise ConnectionError("broken")
        return self._cursor.execute(sql, *args, **how)

    def close(self) -> None:
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)
