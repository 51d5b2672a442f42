"""Share something of which there is a limited number among keys and workspaces."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ade.domain.errors import TooManyRequests, Unavailable
from ade.http.auth import Authorization


class Shares(NamedTuple):
    """Say how many there may be at once: of this process, of a workspace, of a key."""

    total: int
    per_workspace: int
    per_key: int


class FairShare:
    """Count what is in use.

    A key or a workspace that has its share gets 429. When all are in use, others get 503, except a
    workspace that has none: it gets one, so that no others can shut it out. For that there are at
    most as many again.
    """

    def __init__(self, what: str, shares: Shares) -> None:
        self._what = what
        self.shares = shares
        self._total = 0
        self._workspaces = Counter[str]()
        self._keys = Counter[str]()

    def enter(self, auth: Authorization) -> None:
        """Count one more, or raise why there may be none."""
        workspace, key, shares = auth.workspace.id, auth.principal.holder.key_id, self.shares
        if self._keys[key] >= shares.per_key:
            raise TooManyRequests(f"This key has {shares.per_key} {self._what} already.")
        if self._workspaces[workspace] >= shares.per_workspace:
            raise TooManyRequests(
                f"This workspace has {shares.per_workspace} {self._what} already."
            )
        room = shares.total if self._workspaces[workspace] else 2 * shares.total
        if self._total >= room:
            raise Unavailable(f"There are {self._total} {self._what} already; try again shortly.")
        self._total += 1
        self._keys[key] += 1
        self._workspaces[workspace] += 1

    def leave(self, auth: Authorization) -> None:
        """Count one less."""
        self._total -= 1
        for counter, name in (
            (self._keys, auth.principal.holder.key_id),
            (self._workspaces, auth.workspace.id),
        ):
            counter[name] -= 1
            if not counter[name]:
                del counter[name]

    @contextmanager
    def held(self, auth: Authorization) -> Iterator[None]:
        """Count one while inside."""
        self.enter(auth)
        try:
            yield
        finally:
            self.leave(auth)
