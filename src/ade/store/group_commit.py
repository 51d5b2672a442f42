"""Group commit: calls that wait at the same time commit together.

The model. One thread owns one connection that writes. Callers pass it a *verb*, a function that
takes a transaction and a list of items and returns one outcome for each, and wait. The thread takes
all calls that are waiting, collects the items of each verb, runs each verb once, and commits once;
then every caller gets its own outcome. While one commit is on its way to the disk, the next group
gathers, so that many calls share the cost of one commit.

    failure                                  what happens
    ---------------------------------------  --------------------------------------------------
    a verb returns an exception for an item  only that caller gets it; the others commit
    a verb raises                            the group is rolled back, each call runs on its own
    a race with another process              the call runs again (a unique key lost, a deadlock)
    the connection breaks before the commit  a new one is opened, and the group runs on it
    the connection breaks during the commit  nothing runs again: whether it was committed is not
                                             known, and the callers get OutcomeUnknown
    the database cannot be reached, or       the callers get Unreachable, and so do those that
    another process keeps it locked          wait behind them: nothing of theirs has run
    a statement or a lock takes too long     likewise, also the callers whose own work was not slow
    a caller gives up waiting                its call still runs; its outcome is dropped

The calls of a group are concurrent, so the order of their verbs is free, with one exception: the
verb `last` runs after the others. It locks workspaces, the others lock gates and lanes; because
every process takes these locks in the same order, two processes cannot deadlock on them.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ade.domain.errors import Unavailable
from ade.store.port import LostRace, Transaction, Verb

# Runs work in one transaction, commits, and returns what the work returned.
Commit = Callable[[Callable[[Transaction], Any]], Any]

ITEMS_PER_COMMIT_MAX = 4000
CALLS_WAITING_MAX = 100_000
RUNS_MAX = 5


class OutcomeUnknown(Unavailable):
    """ADE cannot tell whether this took place."""


class Unreachable(Unavailable):
    """The database cannot be reached."""


@dataclass(slots=True)
class Call:
    """Hold one caller's items and where its outcomes go."""

    verb: Verb
    items: list[Any]
    resolve: Callable[[Sequence[Any] | BaseException], None]
    loop: asyncio.AbstractEventLoop | None
    outcome: Sequence[Any] | BaseException | None = field(default=None)


class GroupCommit:
    """Run verbs for many callers on one connection, in as few transactions as they allow."""

    def __init__(
        self,
        commit: Commit,
        is_conflict: Callable[[Exception], bool],
        *,
        last: Verb | None = None,
        counted: Callable[[int], None] = lambda items: None,
        idle: Callable[[], None] = lambda: None,
        idle_seconds: float | None = None,
    ) -> None:
        self._commit = commit
        self._is_conflict = is_conflict
        self._last = last
        self._counted = counted
        self._idle = idle
        self._idle_seconds = idle_seconds
        self._calls: deque[Call] = deque()
        self._wakes = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="ade-writer", daemon=True)
        self._thread.start()

    def call(self, verb: Verb, items: list[Any]) -> Sequence[Any]:
        """Run a verb and wait for it in this thread."""
        future: Future[Sequence[Any]] = Future()

        def resolve(outcome: Sequence[Any] | BaseException) -> None:
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._enqueue(Call(verb, items, resolve, None))
        return future.result()

    def acall(self, verb: Verb, items: list[Any]) -> asyncio.Future[Sequence[Any]]:
        """Run a verb and return a future of the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[Any]] = loop.create_future()

        def resolve(outcome: Sequence[Any] | BaseException) -> None:
            if future.done():
                return
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._enqueue(Call(verb, items, resolve, loop))
        return future

    def close(self) -> None:
        """Finish what was handed over, then stop."""
        with self._wakes:
            self._closed = True
            self._wakes.notify()
        self._thread.join()

    def _enqueue(self, call: Call) -> None:
        with self._wakes:
            if self._closed:
                raise Unavailable("The store is closed: ADE is shutting down.")
            if len(self._calls) >= CALLS_WAITING_MAX:
                raise Unavailable("The database is overloaded; try again shortly.")
            self._calls.append(call)
            self._wakes.notify()

    def _serve(self) -> None:
        while not self._over():
            group = self._take()
            if not group:
                with contextlib.suppress(Exception):  # a look that failed is looked again
                    self._idle()
                continue
            try:
                self._run_together(group)
            except Unavailable as error:
                self._refuse(group, error)
            except Exception:
                self._run_each_alone(group)
            self._deliver(group)
            self._counted(sum(len(call.items) for call in group))

    def _over(self) -> bool:
        with self._wakes:
            return self._closed and not self._calls

    def _take(self) -> list[Call]:
        """Wait for work and take all of it, up to a limit; nothing if none came for a while."""
        with self._wakes:
            if not self._calls and not self._closed:
                self._wakes.wait(self._idle_seconds)
            group: list[Call] = []
            items = 0
            while self._calls and (not group or items < ITEMS_PER_COMMIT_MAX):
                group.append(self._calls.popleft())
                items += len(group[-1].items)
            return group

    def _refuse(self, group: list[Call], error: Unavailable) -> None:
        """Give the error to a group, and to the calls behind it if each would wait as long."""
        if isinstance(error, Unreachable):
            group += self._take_waiting()
        for call in group:
            call.outcome = error

    def _run_each_alone(self, group: list[Call]) -> None:
        for number, call in enumerate(group):
            self._run_alone(call)
            if isinstance(call.outcome, Unreachable):
                rest = group[number:]
                del group[number:]
                self._refuse(rest, call.outcome)
                group += rest
                return

    def _take_waiting(self) -> list[Call]:
        """Take all calls that wait; each would wait as long for a database that is away."""
        with self._wakes:
            waiting = list(self._calls)
            self._calls.clear()
            return waiting

    def _run_together(self, group: list[Call]) -> None:
        by_verb: dict[Verb, list[Call]] = {}
        for call in group:
            by_verb.setdefault(call.verb, []).append(call)
        if self._last in by_verb:
            by_verb[self._last] = by_verb.pop(self._last)

        def work(transaction: Transaction) -> list[tuple[list[Call], Sequence[Any]]]:
            return [
                (calls, verb(transaction, [item for call in calls for item in call.items]))
                for verb, calls in by_verb.items()
            ]

        for calls, outcomes in self._commit(work):
            start = 0
            for call in calls:
                call.outcome = outcomes[start : start + len(call.items)]
                start += len(call.items)

    def _run_alone(self, call: Call) -> None:
        for run in range(1, RUNS_MAX + 1):
            try:
                call.outcome = self._commit(lambda transaction: call.verb(transaction, call.items))
                return
            except Exception as error:
                call.outcome = error
                lost_a_race = isinstance(error, LostRace) or self._is_conflict(error)
                if run == RUNS_MAX or not lost_a_race:
                    return

    def _deliver(self, group: list[Call]) -> None:
        """Resolve callers, waking each event loop once for all of its callers."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Call]] = {}
        for call in group:
            if call.loop is None:
                _resolve_all([call])
            else:
                by_loop.setdefault(call.loop, []).append(call)
        for loop, calls in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed: no caller waits
                loop.call_soon_threadsafe(_resolve_all, calls)


def _resolve_all(calls: list[Call]) -> None:
    for call in calls:
        call.resolve(call.outcome if call.outcome is not None else [])
