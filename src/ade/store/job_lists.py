"""List and count the jobs of a workspace, at a cost that does not grow with their number.

A list follows the index of one filter (see `ade.store.sql.lists`). Of a filter with several values,
each is listed by itself, and the lists are merged. Counts by status, kind and priority come from
the counters. The other counts read what they count: a target, a document or a configuration has few
jobs, a range of time has as many as it is long.
"""

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ade.domain.ids import uuid7
from ade.domain.job import TERMINAL
from ade.domain.units import MICROSECONDS
from ade.store.executor import Executor
from ade.store.rows import JobRow
from ade.store.sql import lists
from ade.store.sql.job_counts import COUNTED_BY
from ade.store.sql.lists import DRIVERS, TIMES, ListShape

# Identifier and time of submission are made in one transaction, which has a time limit.
ID_SLACK_US = 15 * MICROSECONDS
Filters = Mapping[str, Any]


class JobLists:
    """List and count jobs; a filter is a value, or a tuple of values of which one must match."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql
        sql.dialect.plan_by_values(sql.cursor)

    def list_jobs(
        self, workspace_id: str, filters: Filters, before: str | None, limit: int
    ) -> list[JobRow]:
        """Read jobs that match all filters, newest first."""
        driver = self._driver(workspace_id, filters)
        if driver is None and any(name in filters for name in DRIVERS):
            return []
        found = [
            self._list(workspace_id, {**filters, **one}, driver, before, limit)
            for one in _each_value(filters, driver)
        ]
        merged = heapq.merge(*found, key=lambda job: job.id, reverse=True)
        return [job for job, _ in zip(merged, range(limit), strict=False)]

    def count_jobs(self, workspace_id: str, filters: Filters) -> dict[str, int]:
        """Count the jobs that match all filters, by status."""
        if set(filters) <= set(COUNTED_BY):
            return self._counted(workspace_id, filters)
        # Of what the counters know there may be many; a range of time is shorter.
        known = (name for name in DRIVERS if name in filters and name not in COUNTED_BY)
        shape, values = self._shape(filters, next(known, None), None)
        found = self._sql.adhoc(
            ("count_jobs", shape), lambda: lists.count_jobs(shape), workspace_id, *values
        )
        return {str(status): int(count) for status, count in found}

    def _list(
        self,
        workspace_id: str,
        filters: Filters,
        driver: str | None,
        before: str | None,
        limit: int,
    ) -> list[JobRow]:
        shape, values = self._shape(filters, driver, before)
        found = self._sql.adhoc(
            ("list_jobs", shape), lambda: lists.list_jobs(shape), workspace_id, *values, limit
        )
        return [JobRow._make(row) for row in found]

    def _driver(self, workspace_id: str, filters: Filters) -> str | None:
        """Choose the filter whose index is followed; None if there is none, or no job matches."""
        driver = next((name for name in DRIVERS if name in filters), None)
        counted = [name for name in COUNTED_BY if name in filters]
        if driver not in COUNTED_BY or len(counted) < 2:
            return driver
        of_all = {name: filters[name] for name in counted}
        if not sum(self._counted(workspace_id, of_all).values()):
            return None
        sizes = {
            name: sum(self._counted(workspace_id, {name: filters[name]}).values())
            for name in counted
        }
        return min(sizes, key=lambda name: sizes[name])

    def _counted(self, workspace_id: str, filters: Filters) -> dict[str, int]:
        """Add up counters that match all filters, by status."""
        counts: Counter[str] = Counter()
        for row in self._sql.rows("sum_counters", workspace_id):
            facets = dict(zip(COUNTED_BY, row, strict=False))
            if all(facets[name] in _values(wanted) for name, wanted in filters.items()):
                counts[facets["status"]] += int(row[-1])
        return {status: count for status, count in counts.items() if count}

    def _shape(
        self, filters: Filters, driver: str | None, before: str | None
    ) -> tuple[ListShape, list[Any]]:
        """Describe the statement for these filters, and arrange its parameters."""
        names = tuple(sorted(filters))
        several = frozenset(name for name in names if isinstance(filters[name], tuple))
        as_list = self._sql.dialect.list_parameter
        values = [
            as_list(list(filters[name])) if name in several else filters[name] for name in names
        ]
        bounds = _bounds(filters, before)
        is_terminal = filters["status"] in TERMINAL if driver == "status" else None
        shape = ListShape(names, several, driver, tuple(bounds), is_terminal)
        return shape, [*values, *bounds.values()]


def _each_value(filters: Filters, driver: str | None) -> list[dict[str, Any]]:
    """Take the driver's values one by one."""
    if driver is None:
        return [{}]
    return [{driver: value} for value in dict.fromkeys(_values(filters[driver]))]


def _values(wanted: Any) -> tuple[Any, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _bounds(filters: Filters, before: str | None) -> dict[str, str]:
    """Find between which identifiers the jobs are."""
    after_at, before_at = (filters.get(name) for name in TIMES)
    bounds = {}
    if after_at is not None:
        bounds["newer_than"] = uuid7(max(after_at - ID_SLACK_US, 0), 0)
    last = [] if before_at is None else [uuid7(max(before_at + ID_SLACK_US, 0), 0)]
    last += [] if before is None else [before]
    if last:
        bounds["older_than"] = min(last)
    return bounds
