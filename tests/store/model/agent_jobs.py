"""The jobs of agents, their pools and the hosts, on dictionaries."""

from collections.abc import Sequence

from tests.store.model.invariants import ImpossibleRow
from tests.store.model.tables import Tables

from ade.domain.agent_pool import AgentPool
from ade.domain.job import Status
from ade.store.agent_jobs import LAST_ID
from ade.store.rows import (
    AgentJob,
    AgentJobRow,
    AgentJobVersion,
    HeldJob,
    HostRow,
    JobRef,
    JobRow,
    StaleJob,
)
from ade.store.sql.agent_jobs import BEAT_SLACK_US


class MemoryAgentJobs:
    """Read and change the jobs of agents."""

    def __init__(self, tables: Tables, now_us: int = 0) -> None:
        self._tables = tables
        self._now_us = now_us

    def find(self, job_id: str) -> AgentJobRow | None:
        """Find a job of an agent by its id alone."""
        return self._tables.agent_jobs.get(job_id)

    def _of(self, workspace_id: str) -> list[AgentJob]:
        return [
            AgentJob(self._tables.jobs[JobRef(workspace_id, known.job_id)], known)
            for known in self._tables.agent_jobs.values()
            if known.workspace_id == workspace_id
        ]

    def page(self, workspace_id: str, before: str | None, limit: int) -> list[AgentJob]:
        """List jobs of agents, newest first."""
        found = [one for one in self._of(workspace_id) if one.job.id < (before or LAST_ID)]
        return sorted(found, key=lambda one: one.job.id, reverse=True)[:limit]

    def versions(self, before: str | None, limit: int) -> list[AgentJobVersion]:
        """List the states of the jobs of agents in all workspaces, newest first."""
        found = []
        for known in self._tables.agent_jobs.values():
            job = self._tables.jobs[JobRef(known.workspace_id, known.job_id)]
            of_job = job.event_seq, known.reported_at, job.finished_at
            found.append(AgentJobVersion(known.job_id, known.workspace_id, *of_job))
        return sorted((v for v in found if v.job_id < (before or LAST_ID)), reverse=True)[:limit]

    def waiting(self, workspace_id: str, limit: int) -> list[AgentJob]:
        """List jobs that wait for an agent, in the order of the queue."""
        found = [one for one in self._of(workspace_id) if one.job.eligible]
        return sorted(found, key=lambda one: (one.job.rank, one.job.id))[:limit]

    def _jobs(self, status: Status) -> list[JobRow]:
        pools = self._tables.agent_pools
        return [
            job for job in self._tables.jobs.values() if job.pool in pools and job.status == status
        ]

    def held(self) -> list[HeldJob]:
        """List the jobs that agents hold."""
        return [
            HeldJob(*(getattr(job, name) for name in HeldJob._fields))
            for job in self._jobs(Status.RUNNING)
        ]

    def pool(self, name: str) -> AgentPool | None:
        """Return what the jobs of a pool ask for."""
        return self._tables.agent_pools.get(name)

    def waiting_pools(self) -> list[AgentPool]:
        """Return the pools in which jobs could be claimed now."""
        waiting = {job.pool for job in self._jobs(Status.QUEUED) if job.eligible}
        return [pool for name, pool in self._tables.agent_pools.items() if name in waiting]

    def hosts(self) -> list[HostRow]:
        """List the hosts by name."""
        return sorted(self._tables.hosts.values())

    def insert(self, job: AgentJobRow, pool: AgentPool) -> None:
        """Insert what is known of a new job, and its pool if it is the first one there."""
        if job.job_id in self._tables.agent_jobs:
            raise ImpossibleRow("pk_agent_jobs")
        self._tables.agent_pools.setdefault(pool.name, pool)
        self._tables.agent_jobs[job.job_id] = job

    def record(self, job_id: str, facts: str) -> None:
        """Record what an agent reported of a job, now."""
        known = self._tables.agent_jobs[job_id]
        changed = known._replace(facts=facts, reported_at=self._now_us)
        self._tables.agent_jobs[job_id] = changed

    def stale(self, seen_before: int, limit: int) -> list[StaleJob]:
        """Find the jobs whose status is stale, or whose agent was not seen since a time."""
        found = []
        for job in self._jobs(Status.RUNNING):
            host = self._tables.hosts.get(job.lease_owner or "")
            seen_at = None if host is None else host.seen_at
            is_stale = (job.lease_expires_at or 0) < self._now_us
            if is_stale or (seen_at is not None and seen_at < seen_before):
                found.append(StaleJob(job, seen_at))
        return found[:limit]

    def due(self, limit: int) -> list[JobRow]:
        """Find the jobs of agents whose time has come."""
        waiting = self._jobs(Status.PENDING) + self._jobs(Status.QUEUED)
        return [
            job
            for job in waiting
            if not job.eligible and job.not_before is not None and job.not_before <= self._now_us
        ][:limit]

    def put_hosts(self, hosts: Sequence[HostRow]) -> None:
        """Note that hosts were heard of, and what they said."""
        for host in hosts:
            known = self._tables.hosts.get(host.name) or host
            known_beat = (known.beat_at or 0) - BEAT_SLACK_US
            is_latest = host.beat_at is not None and host.beat_at >= known_beat
            self._tables.hosts[host.name] = known._replace(
                seen_at=max(known.seen_at, host.seen_at),
                asked_at=_later(known.asked_at, host.asked_at),
                beat_at=_later(known.beat_at, host.beat_at),
                info=host.info if is_latest else known.info,
            )

    def delete_silent_hosts(self, seen_before: int) -> int:
        """Forget hosts that were not heard of for long."""
        hosts = self._tables.hosts
        silent = [name for name, host in hosts.items() if host.seen_at < seen_before]
        for name in silent:
            del hosts[name]
        return len(silent)


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)
