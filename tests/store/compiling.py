"""Every statement of the store, compiled for each database."""

from itertools import pairwise

from ade.store.compile import compile_statement
from ade.store.dialects.dialect import Dialect
from ade.store.dialects.mssql import MssqlDialect
from ade.store.dialects.postgres import PostgresDialect
from ade.store.dialects.sqlite import SqliteDialect
from ade.store.sql import STATEMENTS, Statement, builds, lists
from ade.store.sql.lists import DRIVERS, TIMES, ListShape

DIALECTS: dict[str, Dialect] = {
    "sqlite": SqliteDialect(),
    "postgresql": PostgresDialect(),
    "mssql": MssqlDialect(),
}
# A statement of several changes runs only where one statement may hold them.
CHAINS = {"claim", "claim_of_kinds"}


def statements() -> dict[str, Statement]:
    """Return every statement by name."""
    names = (*DRIVERS, *TIMES)
    listing = {
        f"list_jobs by {name}, {bounds}": lists.list_jobs(_shape((name,), bounds))
        for name in names
        for bounds in ((), ("older_than",), ("newer_than", "older_than"))
    }
    listing |= {
        f"list_jobs by {name} and some of {other}": lists.list_jobs(
            _shape((name, other), several=frozenset({other}))
        )
        for name, other in pairwise((*DRIVERS, DRIVERS[0]))
    }
    listing |= {
        f"count_jobs by {names}": lists.count_jobs(_shape(names, several=several))
        for names, several in (
            ((), frozenset[str]()),
            (("target_id", "submitted_before"), frozenset[str]()),
            (DRIVERS, frozenset(DRIVERS)),
        )
    }
    filters = ((), ("status",), ("configuration_id",), ("configuration_id", "status"))
    listing |= {f"list_builds by {names}": builds.list_builds(names) for names in filters}
    return {**STATEMENTS, **listing}


def _shape(
    names: tuple[str, ...],
    bounds: tuple[str, ...] = (),
    several: frozenset[str] = frozenset(),
) -> ListShape:
    """Describe a list that follows the index of its first filter."""
    driver = names[0] if names and names[0] in DRIVERS else None
    return ListShape(
        names, several, driver, bounds, is_terminal=True if driver == "status" else None
    )


def sql_of(dialect: str) -> dict[str, str]:
    """Compile every statement that a database runs."""
    spoken = DIALECTS[dialect]
    return {
        name: compile_statement(spoken, statement).sql
        for name, statement in statements().items()
        if spoken.chains_changes or name not in CHAINS
    }
