"""The statements that list and count jobs by filters.

One filter is the driver: its index gives the jobs in the order of the list, so that a page costs
what is on it, however many jobs there are. The other filters are compared with each of these jobs.
Identifiers sort by the time of the submission, so filters by time are bounds of the index.
"""

from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.elements import ColumnElement

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import Parameters
from ade.store.schema import jobs, requests
from ade.store.sql.clauses import JOB_COLUMNS, same_row
from ade.store.sql.statement import Statement

# The filters that have an index, the one that finds the fewest jobs first, as a rule.
DRIVERS = (
    "target_id",
    "document_id",
    "configuration_id",
    "evaluation",
    "status",
    "kind",
    "priority",
)
# The filters by time, with the parameter of each.
TIMES = {"submitted_after": "now", "submitted_before": "at"}
# Bounds of identifiers: exclusive, newer than and older than.
BOUNDS = {"newer_than": "first_id", "older_than": "id"}


class ListShape(NamedTuple):
    """Describe a list: its filters, which of them are lists of values, its driver and bounds."""

    names: tuple[str, ...]
    several: frozenset[str]
    driver: str | None
    bounds: tuple[str, ...]
    # If the driver is a status: whether it is a terminal one, which has an index of its own.
    is_terminal: bool | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """Name the parameters: the workspace, those of the filters, and those of the bounds."""
        filters = [self.parameter(name) for name in self.names]
        return ("workspace_id", *filters, *(BOUNDS[name] for name in self.bounds))

    def parameter(self, name: str) -> str:
        """Name the parameter of a filter."""
        return f"{name}_list" if name in self.several else TIMES.get(name, name)


def list_jobs(shape: ListShape) -> Statement:
    """List jobs of a workspace that match all filters, newest first."""

    def build(d: Dialect, p: Parameters) -> Executable:
        query = _matching(d, p, shape, select(*JOB_COLUMNS))
        return d.limited(query.order_by(_side(shape.driver).c.id.desc()), p["limit"])

    return Statement(build, (*shape.fields, "limit"), many=False)


def count_jobs(shape: ListShape) -> Statement:
    """Count the jobs of a workspace that match all filters, by status."""

    def build(d: Dialect, p: Parameters) -> Executable:
        counted = select(jobs.c.status, func.count())
        return _matching(d, p, shape, counted).group_by(jobs.c.status)

    return Statement(build, shape.fields, many=False)


def _side(name: str | None) -> Any:
    """Return the half of a job that has the column of a filter."""
    return jobs if name is None or name in jobs.c else requests


def _matching(d: Dialect, p: Parameters, shape: ListShape, query: Select[Any]) -> Select[Any]:
    side = _side(shape.driver)
    other = requests if side is jobs else jobs
    query = query.select_from(side.join(other, same_row()))
    query = query.where(side.c.workspace_id == p["workspace_id"])
    for name in shape.names:
        query = query.where(_matches(d, p, shape, name))
    if shape.is_terminal is not None:
        has_ended = jobs.c.finished_at.is_not(None)
        query = query.where(has_ended if shape.is_terminal else jobs.c.finished_at.is_(None))
    for name in shape.bounds:
        bound = p[BOUNDS[name]]
        query = query.where(side.c.id > bound if name == "newer_than" else side.c.id < bound)
    return query


def _matches(d: Dialect, p: Parameters, shape: ListShape, name: str) -> ColumnElement[bool]:
    parameter = shape.parameter(name)
    if name == "submitted_after":
        return requests.c.submitted_at > p[parameter]
    if name == "submitted_before":
        return requests.c.submitted_at < p[parameter]
    column = _side(name).c[name]
    if name != shape.driver:
        column = d.unindexed(column)
    return d.one_of(column, parameter) if name in shape.several else column == p[parameter]
