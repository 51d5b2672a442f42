"""Who sends a request of the worker contract: an agent, a user, or a trusted network."""

from typing import Protocol

from starlette.types import Scope

from ade.http.auth import Principal


class ContractCaller(Protocol):
    """Identify who sends a request.

    `name` is that of the agent whose key it is; None may speak for any worker. `user` is whose key
    it is, None for an agent's key and for a trusted network.
    """

    @property
    def name(self) -> str | None:
        """Return the agent's name."""
        ...

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels that the agent was enrolled with."""
        ...

    @property
    def user(self) -> Principal | None:
        """Return the user."""
        ...

    def check_worker(self, worker_id: str) -> None:
        """Raise Forbidden if the caller may not speak for this worker."""
        ...


class Callers(Protocol):
    """Authenticate the requests of the worker contract."""

    async def worker(self, scope: Scope) -> ContractCaller:
        """Find who sends a request of a worker, or raise Unauthenticated or Forbidden."""
        ...

    async def caller(self, scope: Scope) -> ContractCaller:
        """Find who sends a request about jobs, or raise Unauthenticated."""
        ...


class UserCaller:
    """A user's key; that of an operator may speak for any worker."""

    name: str | None = None
    labels: frozenset[str] = frozenset()

    def __init__(self, user: Principal) -> None:
        self.user: Principal | None = user

    def check_worker(self, worker_id: str) -> None:
        """Accept any worker: only operators get this far."""
