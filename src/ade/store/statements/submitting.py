"""The statements that take jobs in."""

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
from ade.store.dialects.base import Dialect
from ade.store.given import Given
from ade.store.schema import (
    executions,
    gates,
    idempotency_keys,
    is_eligible,
    is_held,
    jobs,
    requests,
)
from ade.store.statements.parts import insert_values

# A fence is nothing that anyone brings along.
BORN = (*[name for name in rows.JobRow._fields if name != "fence"], "payload", "history")
# Which job stands for which piece of work.
STAND = tuple(executions.c.keys())
_FIRST_FENCE: ColumnElement[int] = literal_column("0")


def insert_requests(d: Dialect, g: Given) -> Insert:
    """Insert what is asked of new jobs."""
    return insert_values(g, requests, {name: g[name] for name in BORN if name in requests.c})


def insert_jobs(d: Dialect, g: Given) -> Insert:
    """Insert where new jobs are, with the first lines of their logs."""
    values = {name: g[name] for name in BORN if name in jobs.c}
    return insert_values(g, jobs, {**values, "fence": _FIRST_FENCE})


def register_executions(d: Dialect, g: Given) -> Insert:
    """Let new jobs stand for pieces of work for which none does yet."""
    values = {name: g[name] for name in STAND}
    if (passing := d.insert_or_pass(executions)) is not None:
        return insert_values(g, passing, values)
    known = exists().where(*[column == values[column.name] for column in executions.primary_key])
    source = select(*[value.label(name) for name, value in values.items()]).where(~known)
    return insert(executions).from_select(list(values), source)


def find_executions(d: Dialect, g: Given) -> Executable:
    """Find which jobs stand for pieces of work."""
    return select(executions.c.job_id).where(d.one_of(executions.c.work_id, "work_ids"))


def forget_executions(d: Dialect, g: Given) -> Executable:
    """Take from a job that it stands for a piece of work."""
    return delete(executions).where(
        executions.c.work_id == g["work_id"], executions.c.job_id == g["job_id"]
    )


def find_idempotency(d: Dialect, g: Given) -> Executable:
    """Find what was answered to requests of these keys."""
    same = [idempotency_keys.c[name] == g[name] for name in rows.IdempotencyRef._fields]
    return select(*[idempotency_keys.c[name] for name in rows.IdempotencyRow._fields]).where(*same)


def insert_idempotency(d: Dialect, g: Given) -> Insert:
    """Remember the answers to requests."""
    return insert_values(
        g, idempotency_keys, {name: g[name] for name in rows.IdempotencyRow._fields}
    )


def answer_idempotency(d: Dialect, g: Given) -> Update:
    """Record the answer that was still being made."""
    same = [idempotency_keys.c[name] == g[name] for name in rows.IdempotencyRef._fields]
    return (
        update(idempotency_keys)
        .where(*same, idempotency_keys.c.response_status.is_(None))
        .values(response_status=g["response_status"], response_body=g["response_body"])
    )


def delete_idempotency(d: Dialect, g: Given) -> Executable:
    """Forget answers older than a day."""
    return delete(idempotency_keys).where(idempotency_keys.c.created_at < g["created_at"])


def pass_gate(d: Dialect, g: Given) -> Update:
    """Lock the gate until the end of the transaction: who counts next waits here."""
    return update(gates).where(gates.c.name == g["name"]).values(passed=gates.c.passed + 1)


def count_waiting(d: Dialect, g: Given) -> Executable:
    """Count the jobs of a pool that wait, up to a number; each is either eligible or held."""
    of_pool: Select[Any] = select(literal_column("1").label("one")).where(jobs.c.pool == g["pool"])
    # The order names the index: another holds these jobs too, but not by their pool.
    held = of_pool.where(is_held(jobs)).order_by(jobs.c.not_before)
    return _sum_of_counts(d, g, of_pool.where(is_eligible(jobs)), held)


def count_waiting_in(d: Dialect, g: Given) -> Executable:
    """Count the jobs of a workspace that wait in a pool, up to a number."""
    here = jobs.c.workspace_id == g["workspace_id"], jobs.c.pool == g["pool"]
    of_workspace: Select[Any] = select(literal_column("1").label("one")).where(*here)
    eligible, held = of_workspace.where(is_eligible(jobs)), of_workspace.where(is_held(jobs))
    return _sum_of_counts(d, g, eligible, held)


def _sum_of_counts(d: Dialect, g: Given, *queries: Select[Any]) -> Executable:
    """Count what each query finds, but no further than the limit."""
    some = [d.limited(query, g["limit"]).subquery() for query in queries]
    counts = [select(func.count()).select_from(one).scalar_subquery() for one in some]
    return select(sum(counts[1:], counts[0]))
