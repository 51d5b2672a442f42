"""The store in dictionaries: for tests that need no database, and to be read as what every store
must do. It keeps nothing on disk, and one lock replaces every lock of a database."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.store.model.reading import MemoryReading
from tests.store.model.tables import Tables
from tests.store.model.transaction import MemoryTransaction

from ade.clock import Clock, SystemClock
from ade.domain.errors import Unavailable
from ade.store.port import OnCommit, Reading, Result, Verb
from ade.store.rows import JobRef


class MemoryStore:
    """Run verbs on dictionaries: each sees all that was committed, and leaves all or nothing.

        store = MemoryStore()
        store.add_workspace(workspace_id)
        kernel = Kernel(store)

    It refuses the rows that a database would refuse (`ImpossibleRow`).
    """

    def __init__(
        self, *, clock: Clock | None = None, on_commit: OnCommit = lambda topics: None
    ) -> None:
        self.clock = clock or SystemClock()
        self.on_commit = on_commit
        self.tables = Tables()
        self._lock = threading.RLock()
        self._closed = False

    def add_workspace(self, workspace_id: str) -> None:
        """Let jobs be submitted to a workspace."""
        self.tables.workspaces.add(workspace_id)

    def add_document(self, workspace_id: str, document_id: str) -> None:
        """Let runs name a document."""
        self.tables.documents.add(JobRef(workspace_id, document_id))

    def add_configuration(self, workspace_id: str, configuration_id: str) -> None:
        """Let runs name a configuration."""
        self.tables.configurations.add(JobRef(workspace_id, configuration_id))

    def write(self, verb: Verb, items: list[Any]) -> Sequence[Any]:
        """Run a verb, and keep what it did only if it returns."""
        with self._lock:
            if self._closed:
                raise Unavailable("The store is closed: ADE is shutting down.")
            draft = self.tables.copy()
            transaction = MemoryTransaction(draft, self.clock.now_us())
            outcomes = verb(transaction, items)
            self.tables = draft
        if transaction.topics:
            self.on_commit(list(transaction.topics))
        return outcomes

    def awrite(self, verb: Verb, items: list[Any]) -> "asyncio.Future[Sequence[Any]]":
        """Run a verb at once; the future is already resolved."""
        future: asyncio.Future[Sequence[Any]] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(self.write(verb, items))
        except Exception as error:
            future.set_exception(error)
        return future

    def read(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        with self._lock:
            return look(MemoryReading(self.tables))

    async def aread(self, look: Callable[[Reading], Result]) -> Result:
        """Read in one snapshot."""
        return self.read(look)

    def close(self) -> None:
        """Refuse what comes after."""
        self._closed = True
