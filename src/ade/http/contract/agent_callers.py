"""Authenticate agents by their keys, users by theirs, and trusted networks without any.

    who sends it                                what it may
    ------------------------------------------  ------------------------------------------------
    an agent's key                              speak for this agent, and see what it holds
    an operator's key                           speak for any agent
    another user's key                          what its roles allow, but not speak for agents
    no key, from a trusted network              speak for agents that were never enrolled, and
                                                what `ContractContext.job` says
    no key, but from a browser                  nothing: a page of any site could send it
    no key, from elsewhere                      nothing

Workers that were written for this contract alone know of no keys. They work from the networks that
`ADE_WORKER_NETWORKS` names. Without that setting it is this machine, as long as the server can be
reached from this machine only: it listens on loopback, and no proxy is set up in front of it.
"""

import hashlib

from starlette.types import Scope

from ade.app.enrolled_agents import EnrolledAgent, EnrolledAgents, is_agent_key
from ade.domain.errors import Forbidden, Unauthenticated, Unavailable
from ade.http.auth import NOT_VALID, Authenticator, Principal, key_in
from ade.http.client_address import FORWARDED, LOOPBACK, Networks, client_address, is_loopback
from ade.http.contract.callers import ContractCaller, UserCaller
from ade.http.wrong_keys import WrongKeys
from ade.settings import Settings

# Browsers add these to what any page makes them send; none can be left out by the page.
_OF_BROWSERS = frozenset({b"origin", b"cookie", b"accept-language", b"sec-fetch-site"})
_OF_PROXIES = frozenset({FORWARDED, b"forwarded", b"via", b"x-real-ip"})
OPERATORS_REMEMBERED_MAX = 1000


class AgentCaller:
    """An agent's key speaks for that agent only."""

    user: Principal | None = None

    def __init__(self, agent: EnrolledAgent) -> None:
        self.name: str | None = agent.name
        self.labels = agent.labels

    def check_worker(self, worker_id: str) -> None:
        """Accept the agent's own name."""
        if worker_id != self.name:
            raise Forbidden(f"This key is that of the agent {self.name}, not of {worker_id}.")


class NetworkCaller:
    """A trusted network speaks for any worker that has no key."""

    name: str | None = None
    labels: frozenset[str] = frozenset()
    user: Principal | None = None

    def __init__(self, has_key: frozenset[str]) -> None:
        self._has_key = has_key

    def check_worker(self, worker_id: str) -> None:
        """Accept workers that were never enrolled."""
        if worker_id in self._has_key:
            raise Forbidden(f"The agent {worker_id} is enrolled: it must send its key.")


class AgentCallers:
    """Authenticate the requests of the worker contract."""

    def __init__(
        self,
        authenticator: Authenticator,
        agents: EnrolledAgents,
        settings: Settings,
        wrong_keys: WrongKeys,
    ) -> None:
        self._authenticator = authenticator
        self._agents = agents
        self._wrong_keys = wrong_keys
        self._proxies = Networks(settings.trusted_proxies)
        self._trusted = Networks(trusted_networks(settings))
        # Operators' keys that were valid, for the time that the database is away.
        self._operators: dict[bytes, Principal] = {}

    async def worker(self, scope: Scope) -> ContractCaller:
        """Find who sends a request of a worker: no user but an operator may."""
        caller = await self.caller(scope)
        if caller.user is not None and not caller.user.operator:
            raise Forbidden("This needs an agent's or an operator's key.")
        return caller

    async def caller(self, scope: Scope) -> ContractCaller:
        """Find who sends a request about jobs."""
        key = key_in(scope)
        if key is None:
            if self._is_trusted(scope):
                return NetworkCaller(await self._agents.names())
            return UserCaller(await self._authenticator.principal(scope))
        if is_agent_key(key):
            return await self._agent(scope, key)
        return UserCaller(await self._user(scope, key))

    async def _agent(self, scope: Scope, key: str) -> AgentCaller:
        found = await self._agents.by_key(key)
        if found is None:
            self._wrong_keys.count(scope)
            raise Unauthenticated(NOT_VALID)
        scope.setdefault("state", {})["key_id"] = found.id
        return AgentCaller(found)

    async def _user(self, scope: Scope, key: str) -> Principal:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        try:
            found = await self._authenticator.principal(scope)
        except Unauthenticated:
            self._operators.pop(name, None)
            raise
        except Unavailable:
            if (known := self._operators.get(name)) is None:
                raise
            return known
        if found.operator:
            while len(self._operators) >= OPERATORS_REMEMBERED_MAX:
                del self._operators[next(iter(self._operators))]
            self._operators[name] = found
        return found

    def _is_trusted(self, scope: Scope) -> bool:
        """Tell whether a request comes from a trusted network, and from no browser there."""
        names = {name for name, _ in scope["headers"]}
        if not _OF_BROWSERS.isdisjoint(names):
            return False
        sender = scope["client"][0] if scope.get("client") else ""
        if sender not in self._proxies and not _OF_PROXIES.isdisjoint(names):
            return False  # a proxy that is not known hides who sends it
        return client_address(scope, self._proxies) in self._trusted


def trusted_networks(settings: Settings) -> tuple[str, ...]:
    """Return the networks whose workers need no key."""
    if settings.worker_networks is not None:
        return settings.worker_networks
    is_private = is_loopback(settings.host) and settings.public_url is None
    return LOOPBACK if is_private and not settings.trusted_proxies else ()
