"""The statements that submit jobs: requests, jobs, executions, idempotency keys, admission."""

from typing import Any

from sqlalchemy import (
    Insert,
    Select,
    Update,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import (
    executions,
    gates,
    idempotency_keys,
    is_eligible,
    is_held,
    jobs,
    requests,
)
from ade.store.sql.clauses import insert_values

# The fence of a new job is 0, whatever its row says, and nothing is known of its result.
_LATER = ("fence", "evaluation", "counts")
NEW_JOB = (*[name for name in rows.JobRow._fields if name not in _LATER], "payload", "history")
EXECUTION = tuple(executions.c.keys())
_FIRST_FENCE: ColumnElement[int] = literal_column("0")


def insert_requests(d: Dialect, p: Parameters) -> Insert:
    """Insert the requests of new jobs."""
    return insert_values(p, requests, {name: p[name] for name in NEW_JOB if name in requests.c})


def insert_jobs(d: Dialect, p: Parameters) -> Insert:
    """Insert the states of new jobs, with the first events of their logs."""
    values = {name: p[name] for name in NEW_JOB if name in jobs.c}
    return insert_values(p, jobs, {**values, "fence": _FIRST_FENCE})


def register_executions(d: Dialect, p: Parameters) -> Insert:
    """Register new jobs for their work, unless another job is registered for it."""
    values = {name: p[name] for name in EXECUTION}
    if (passing := d.insert_or_pass(executions)) is not None:
        return insert_values(p, passing, values)
    known = exists().where(*[column == values[column.name] for column in executions.primary_key])
    source = select(*[value.label(name) for name, value in values.items()]).where(~known)
    return insert(executions).from_select(list(values), source)


def find_executions(d: Dialect, p: Parameters) -> Executable:
    """Find the jobs that are registered for pieces of work."""
    return select(executions.c.job_id).where(d.one_of(executions.c.work_id, "work_ids"))


def forget_executions(d: Dialect, p: Parameters) -> Executable:
    """Delete the registration of a job for a piece of work."""
    return delete(executions).where(
        executions.c.work_id == p["work_id"], executions.c.job_id == p["job_id"]
    )


def find_idempotency(d: Dialect, p: Parameters) -> Executable:
    """Find the answer to a request by its idempotency key."""
    same = [idempotency_keys.c[name] == p[name] for name in rows.IdempotencyRef._fields]
    return select(*[idempotency_keys.c[name] for name in rows.IdempotencyRow._fields]).where(*same)


def insert_idempotency(d: Dialect, p: Parameters) -> Insert:
    """Insert an idempotency key, with the answer if there is one already."""
    return insert_values(
        p, idempotency_keys, {name: p[name] for name in rows.IdempotencyRow._fields}
    )


def answer_idempotency(d: Dialect, p: Parameters) -> Update:
    """Record the answer to a request that had none yet."""
    same = [idempotency_keys.c[name] == p[name] for name in rows.IdempotencyRef._fields]
    return (
        update(idempotency_keys)
        .where(*same, idempotency_keys.c.response_status.is_(None))
        .values(response_status=p["response_status"], response_body=p["response_body"])
    )


def delete_idempotency(d: Dialect, p: Parameters) -> Executable:
    """Delete old idempotency keys."""
    return delete(idempotency_keys).where(idempotency_keys.c.created_at < p["created_at"])


def pass_gate(d: Dialect, p: Parameters) -> Update:
    """Lock the gate until the end of the transaction: the next one that counts waits here."""
    return update(gates).where(gates.c.name == p["name"]).values(passed=gates.c.passed + 1)


def count_waiting(d: Dialect, p: Parameters) -> Executable:
    """Count the jobs of a pool that wait, up to a number; each is either eligible or held."""
    of_pool: Select[Any] = select(literal_column("1").label("one")).where(
        jobs.c.pool == p["pool"], _is_counted()
    )
    # The order names the index: another holds these jobs too, but not by their pool.
    held = of_pool.where(is_held(jobs)).order_by(jobs.c.not_before)
    return _sum_of_counts(d, p, of_pool.where(is_eligible(jobs)), held)


def count_waiting_in(d: Dialect, p: Parameters) -> Executable:
    """Count the jobs of a workspace that wait in a pool, up to a number."""
    here = jobs.c.workspace_id == p["workspace_id"], jobs.c.pool == p["pool"], _is_counted()
    of_workspace: Select[Any] = select(literal_column("1").label("one")).where(*here)
    # Here, too, the order names the index.
    held = of_workspace.where(is_held(jobs)).order_by(jobs.c.rank)
    return _sum_of_counts(d, p, of_workspace.where(is_eligible(jobs)), held)


def _is_counted() -> ColumnElement[bool]:
    """Leave out builds, whose rank is negative (`ade.domain.order`).

    The rank stands in an expression so that no database searches an index by it: it is only looked
    at in the entries that are counted anyway.
    """
    return jobs.c.rank + literal_column("0") >= literal_column("0")


def _sum_of_counts(d: Dialect, p: Parameters, *queries: Select[Any]) -> Executable:
    """Count what each query finds, but no further than the limit."""
    some = [d.limited(query, p["limit"]).subquery() for query in queries]
    counts = [select(func.count()).select_from(one).scalar_subquery() for one in some]
    return select(sum(counts[1:], counts[0]))
