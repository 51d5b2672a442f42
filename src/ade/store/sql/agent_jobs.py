"""The statements about the jobs of agents, their pools, and the hosts."""

from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    Update,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.expression import FromClause

from ade.domain.units import MICROSECONDS
from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    agent_jobs,
    agent_pools,
    hosts,
    is_eligible,
    is_held,
    is_running,
    jobs,
    requests,
)
from ade.store.sql.clauses import JOB_COLUMNS, insert_values, same, same_row

BEAT_SLACK_US = MICROSECONDS


def _columns(table: FromClause, row: Any) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in row._fields]


def _is_of_agents(job: FromClause) -> ColumnElement[bool]:
    """Match the jobs of agents: those of a pool that is listed."""
    return job.c.pool.in_(select(agent_pools.c.name))


def insert_agent_job(d: Dialect, p: Parameters) -> Insert:
    """Insert what is known of a new job of an agent."""
    return insert_values(p, agent_jobs, {name: p[name] for name in rows.AgentJobRow._fields})


def record_agent_job(d: Dialect, p: Parameters) -> Update:
    """Record what an agent reported of a job."""
    return (
        update(agent_jobs)
        .where(same(agent_jobs, p, "job_id"))
        .values(facts=p["facts"], reported_at=p["reported_at"])
    )


def find_agent_job(d: Dialect, p: Parameters) -> Executable:
    """Find a job of an agent by its id alone."""
    return select(*_columns(agent_jobs, rows.AgentJobRow)).where(same(agent_jobs, p, "job_id"))


def delete_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """Delete what is known of jobs that are being deleted."""
    return delete(agent_jobs).where(agent_jobs.c.job_id == p["id"])


def _with_jobs() -> Select[Any]:
    of_job = (
        agent_jobs.c.workspace_id == jobs.c.workspace_id,
        agent_jobs.c.job_id == jobs.c.id,
    )
    joined = jobs.join(requests, same_row()).join(agent_jobs, of_job[0] & of_job[1])
    return select(*_columns(agent_jobs, rows.AgentJobRow), *JOB_COLUMNS).select_from(joined)


def list_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """List the jobs of agents in a workspace, newest first, before an id."""
    page = _with_jobs().where(
        agent_jobs.c.workspace_id == p["workspace_id"], agent_jobs.c.job_id < p["id"]
    )
    return d.limited(page.order_by(agent_jobs.c.job_id.desc()), p["limit"])


def list_agent_job_versions(d: Dialect, p: Parameters) -> Executable:
    """List the states of the jobs of agents in all workspaces, newest first, before an id."""
    of_job = (
        agent_jobs.c.workspace_id == jobs.c.workspace_id,
        agent_jobs.c.job_id == jobs.c.id,
    )
    columns = [
        agent_jobs.c[name] if name in agent_jobs.c else jobs.c[name]
        for name in rows.AgentJobVersion._fields
    ]
    page = (
        select(*columns)
        .select_from(agent_jobs.join(jobs, of_job[0] & of_job[1]))
        .where(agent_jobs.c.job_id < p["id"])
    )
    return d.limited(page.order_by(agent_jobs.c.job_id.desc()), p["limit"])


def list_waiting_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """List the jobs of a workspace that wait for an agent, in the order of the queue."""
    waiting = _with_jobs().where(is_eligible(jobs), agent_jobs.c.workspace_id == p["workspace_id"])
    return d.limited(waiting.order_by(jobs.c.rank, jobs.c.id), p["limit"])


def held_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """List the jobs that agents hold."""
    return select(*[jobs.c[name] for name in rows.HeldJob._fields]).where(
        is_running(jobs), _is_of_agents(jobs)
    )


def stale_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find the jobs of agents whose status is stale, or whose agent is silent."""
    silent = hosts.c.seen_at < p["seen_at"]
    found = (
        select(*JOB_COLUMNS, hosts.c.seen_at)
        .select_from(
            jobs.join(requests, same_row()).outerjoin(hosts, hosts.c.name == jobs.c.lease_owner)
        )
        .where(
            is_running(jobs), _is_of_agents(jobs), or_(jobs.c.lease_expires_at < p["now"], silent)
        )
        .order_by(jobs.c.lease_expires_at)
    )
    return d.limited(found, p["limit"])


def due_agent_jobs(d: Dialect, p: Parameters) -> Executable:
    """Find the jobs of agents whose time has come."""
    held = (
        select(*JOB_COLUMNS)
        .select_from(jobs.join(requests, same_row()))
        .where(is_held(jobs), _is_of_agents(jobs), jobs.c.not_before <= p["now"])
        .order_by(jobs.c.not_before)
    )
    return d.limited(held, p["limit"])


def insert_agent_pool(d: Dialect, p: Parameters) -> Insert:
    """Insert a pool that no job was put into before."""
    into = d.insert_or_pass(agent_pools)
    values = {name: p[name] for name in rows.AgentPoolRow._fields}
    return insert_values(p, agent_pools if into is None else into, values)


def find_agent_pool(d: Dialect, p: Parameters) -> Executable:
    """Find a pool of agents by its name."""
    return select(*_columns(agent_pools, rows.AgentPoolRow)).where(same(agent_pools, p, "name"))


def waiting_agent_pools(d: Dialect, p: Parameters) -> Executable:
    """Find the pools of agents in which jobs could be claimed now."""
    waits = exists().where(is_eligible(jobs), jobs.c.pool == agent_pools.c.name)
    return select(*_columns(agent_pools, rows.AgentPoolRow)).where(waits)


def insert_hosts(d: Dialect, p: Parameters) -> Insert:
    """Insert hosts that were heard of for the first time."""
    return insert_values(p, hosts, {name: p[name] for name in rows.HostRow._fields})


def change_hosts(d: Dialect, p: Parameters) -> Update:
    """Note that hosts were heard of again, and what each said if that is its latest heartbeat.

    A host may speak to several servers, and each of them notes what it heard itself. Times are
    reckoned back from that of the transaction, so one heartbeat may have slightly different ones.
    """

    def is_later(name: str, slack: int = 0) -> ColumnElement[bool]:
        known = func.coalesce(hosts.c[name], literal_column("0"))
        return p[name] >= known - literal_column(str(slack))

    changed = {
        name: case((is_later(name), p[name]), else_=hosts.c[name])
        for name in ("seen_at", "asked_at", "beat_at")
    }
    info = case((is_later("beat_at", BEAT_SLACK_US), p["info"]), else_=hosts.c.info)
    return (
        update(hosts)
        .where(same(hosts, p, "name"))
        .values(**changed, info=info)
        .returning(hosts.c.name)
    )


def list_hosts(d: Dialect, p: Parameters) -> Executable:
    """List the hosts by name."""
    return d.limited(select(*_columns(hosts, rows.HostRow)).order_by(hosts.c.name), p["limit"])


def delete_silent_hosts(d: Dialect, p: Parameters) -> Executable:
    """Forget hosts that were not heard of for long."""
    return delete(hosts).where(hosts.c.seen_at < p["seen_at"])
