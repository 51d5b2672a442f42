"""The jobs of agents, their pools, and the hosts that were heard of."""

import json
from collections.abc import Sequence

from ade.domain.agent_pool import AgentPool
from ade.store.executor import Executor
from ade.store.rows import (
    AgentJob,
    AgentJobRow,
    AgentJobVersion,
    AgentPoolRow,
    HeldJob,
    HostRow,
    JobRow,
    StaleJob,
)

HOSTS_LISTED_MAX = 10_000
# After every id.
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class AgentJobReading:
    """Read the jobs of agents, their pools and the hosts."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, job_id: str) -> AgentJobRow | None:
        """Find a job of an agent by its id alone."""
        found = self._sql.first("find_agent_job", job_id)
        return AgentJobRow._make(found) if found else None

    def page(self, workspace_id: str, before: str | None, limit: int) -> list[AgentJob]:
        """List jobs of agents, newest first."""
        rows = self._sql.rows("list_agent_jobs", workspace_id, before or LAST_ID, limit)
        return [_agent_job(row) for row in rows]

    def versions(self, before: str | None, limit: int) -> list[AgentJobVersion]:
        """List the states of the jobs of agents in all workspaces, newest first."""
        rows = self._sql.rows("list_agent_job_versions", before or LAST_ID, limit)
        return [AgentJobVersion._make(row) for row in rows]

    def waiting(self, workspace_id: str, limit: int) -> list[AgentJob]:
        """List jobs that wait for an agent, in the order of the queue."""
        rows = self._sql.rows("list_waiting_agent_jobs", workspace_id, limit)
        return [_agent_job(row) for row in rows]

    def held(self) -> list[HeldJob]:
        """List the jobs that agents hold."""
        return [HeldJob._make(row) for row in self._sql.rows("held_agent_jobs")]

    def pool(self, name: str) -> AgentPool | None:
        """Return what the jobs of a pool ask for."""
        found = self._sql.first("find_agent_pool", name)
        return None if found is None else _agent_pool(AgentPoolRow._make(found))

    def waiting_pools(self) -> list[AgentPool]:
        """Return the pools in which jobs could be claimed now."""
        rows = self._sql.rows("waiting_agent_pools")
        return [_agent_pool(AgentPoolRow._make(row)) for row in rows]

    def hosts(self) -> list[HostRow]:
        """List the hosts by name."""
        return [HostRow._make(row) for row in self._sql.rows("list_hosts", HOSTS_LISTED_MAX)]


class AgentJobChanges(AgentJobReading):
    """Change what is known of the jobs of agents, and of the hosts."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def insert(self, job: AgentJobRow, pool: AgentPool) -> None:
        """Insert what is known of a new job, and its pool if it is the first one there."""
        if self.pool(pool.name) is None:
            labels = json.dumps(pool.labels)
            self._sql.run("insert_agent_pool", pool.name, pool.host, int(pool.require_host), labels)
        self._sql.run("insert_agent_job", *job)

    def record(self, job_id: str, facts: str) -> None:
        """Record what an agent reported of a job, now."""
        self._sql.run("record_agent_job", job_id, facts, self._now_us)

    def stale(self, seen_before: int, limit: int) -> list[StaleJob]:
        """Find the jobs whose status is stale, or whose agent was not seen since a time."""
        found = self._sql.rows("stale_agent_jobs", seen_before, self._now_us, limit)
        return [StaleJob(JobRow._make(row[:-1]), row[-1]) for row in found]

    def due(self, limit: int) -> list[JobRow]:
        """Find the jobs of agents whose time has come."""
        return [JobRow._make(row) for row in self._sql.rows("due_agent_jobs", self._now_us, limit)]

    def put_hosts(self, hosts: Sequence[HostRow]) -> None:
        """Note that hosts were heard of, and what they said."""
        while hosts:
            # Each host once at a time; in one order, so that servers do not wait for each other.
            by_name = {host.name: host for host in hosts}
            some = [by_name[name] for name in sorted(by_name)]
            known = set(self._sql.each("change_hosts", some, lambda row: next(iter(row))))
            self._sql.run_many("insert_hosts", [host for host in some if host.name not in known])
            hosts = [host for host in hosts if by_name[host.name] is not host]

    def delete_silent_hosts(self, seen_before: int) -> int:
        """Forget hosts that were not heard of for long."""
        return self._sql.run("delete_silent_hosts", seen_before)


def _agent_job(row: tuple[object, ...]) -> AgentJob:
    width = len(AgentJobRow._fields)
    return AgentJob(JobRow._make(row[width:]), AgentJobRow._make(row[:width]))


def _agent_pool(row: AgentPoolRow) -> AgentPool:
    return AgentPool(row.host, bool(row.require_host), tuple(json.loads(row.labels)))
