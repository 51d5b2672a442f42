"""The agents that were enrolled, their keys, and the codes that are traded for a key.

The model. An agent is a host with a name and a key; the name is its `worker_id`. A key and a code
are random and stored as SHA-256 digests, as users' keys are. A code is worth one key: what the
agent gets for it replaces the key that was shown beside the code.

    what happens                              what becomes of the keys
    ----------------------------------------  --------------------------------------------------
    a code is traded, also twice at once      one trade gets a new key, the other is refused
    the key that was shown with a code is     the code is void
    used before the code
    a key is replaced                         it works a while longer; the one before it ends now
    an agent is revoked                       its keys and its code are deleted
    a revoked agent is enrolled again         it has a new key, and sees the jobs that it held
"""

import json
from collections.abc import Collection, Sequence

from ade.domain.enrolment import check_agent, minutes_after
from ade.domain.errors import Conflict, NotFound, Unauthenticated
from ade.store.directory import key_digest, new_secret
from ade.store.executor import Executor, id_at
from ade.store.rows import AgentRow, NewAgentKey

AGENT_KEY_PREFIX = "adea_"
CODE_PREFIX = "adec_"
AGENTS_MAX = 5000
NO_AGENT = "There is no agent {!r}. `ade agents list` shows those that there are."
CODE_REFUSED = (
    "This enrolment code is not valid: it was used, or it has expired, or the agent's key is in"
    " use. Make another one with `ade agents rotate NAME`."
)


class AgentReading:
    """Read the agents that were enrolled."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, name: str) -> AgentRow | None:
        """Find an agent by its name, also a revoked one."""
        found = self._sql.first("find_agent", name)
        return AgentRow._make(found) if found else None

    def find_by_key(self, key: str) -> AgentRow | None:
        """Find an agent by its key, unless the key was replaced."""
        found = self._sql.first("find_agent_by_key", key_digest(key))
        return AgentRow._make(found) if found else None

    def list_all(self) -> list[AgentRow]:
        """List the agents by name, also revoked ones."""
        return [AgentRow._make(row) for row in self._sql.rows("list_agents", AGENTS_MAX)]


class AgentChanges(AgentReading):
    """Change the agents that were enrolled."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def enrol(self, name: str, labels: Collection[str], code_minutes: int) -> NewAgentKey:
        """Give an agent a key and a code, or raise Conflict if it has a key."""
        check_agent(name, labels)
        key, code, now = new_secret(AGENT_KEY_PREFIX), new_secret(CODE_PREFIX), self._now_us
        expires_at = minutes_after(now, code_minutes)
        written = json.dumps(sorted(set(labels)))
        enrolled = (written, key_digest(key), key_digest(code), expires_at, now)
        if self.find(name) is None:
            if self._sql.scalar("count_agents") >= AGENTS_MAX:
                raise Conflict(f"There are {AGENTS_MAX} agents; no more can be enrolled.")
            written, key_, code_, *_ = enrolled
            row = AgentRow(id_at(now), name, written, key_, None, None, code_, expires_at, now)
            self._sql.run("insert_agent", *row)
        elif not self._sql.run("enrol_agent_again", name, *enrolled):
            raise Conflict(
                f"An agent {name!r} is enrolled already. `ade agents rotate {name}` gives it"
                " another key, `ade agents revoke` takes its key."
            )
        return NewAgentKey(self._found(name), key, code)

    def rotate(self, name: str, code_minutes: int, overlap_minutes: int) -> NewAgentKey:
        """Give an agent another key and a code; the key that it has works a while longer."""
        key, code, now = new_secret(AGENT_KEY_PREFIX), new_secret(CODE_PREFIX), self._now_us
        replaced = (
            key_digest(key),
            key_digest(code),
            minutes_after(now, code_minutes),
            minutes_after(now, overlap_minutes),
            now,
        )
        if not self._sql.run("replace_agent_key", name, *replaced):
            if self.find(name) is None:
                raise NotFound(NO_AGENT.format(name))
            raise Conflict(
                f"The agent {name!r} is revoked. `ade agents enrol {name}` gives it a key again."
            )
        return NewAgentKey(self._found(name), key, code)

    def trade(self, code: str) -> NewAgentKey:
        """Trade a code for a key, once, or raise Unauthenticated."""
        key = new_secret(AGENT_KEY_PREFIX)
        if not self._sql.run("trade_agent_code", key_digest(code), key_digest(key), self._now_us):
            raise Unauthenticated(CODE_REFUSED)
        agent = self.find_by_key(key)
        assert agent is not None
        return NewAgentKey(agent, key)

    def revoke(self, name: str) -> AgentRow:
        """Take an agent's keys and its code; revoking it twice is harmless."""
        if self.find(name) is None:
            raise NotFound(NO_AGENT.format(name))
        self._sql.run("revoke_agent", name, self._now_us)
        return self._found(name)

    def record_use(self, digests: Sequence[str]) -> None:
        """Record that keys are in use; the codes that were given out with them are void."""
        listed = self._sql.dialect.list_parameter(list(digests))
        self._sql.run("record_agent_keys", listed, self._now_us)
        self._sql.run("record_old_agent_keys", listed, self._now_us)

    def _found(self, name: str) -> AgentRow:
        agent = self.find(name)
        assert agent is not None
        return agent
