"""Every statement of the store, compiled for each database."""

from ade.store.compile import compile_statement
from ade.store.dialects.dialect import Dialect
from ade.store.dialects.mssql import MssqlDialect
from ade.store.dialects.postgres import PostgresDialect
from ade.store.dialects.sqlite import SqliteDialect
from ade.store.sql import STATEMENTS, Statement, builds, reads

DIALECTS: dict[str, Dialect] = {
    "sqlite": SqliteDialect(),
    "postgresql": PostgresDialect(),
    "mssql": MssqlDialect(),
}
# A statement of several changes runs only where one statement may hold them.
CHAINS = {"claim"}
EQUAL_FILTERS = ("status", "kind", "target_id", "priority", "submitted_by", "rerun_of")


def statements() -> dict[str, Statement]:
    """Return every statement by name."""
    listing = {
        f"list_jobs by {name}": reads.list_jobs((name,), paged=paged)
        for name in (*EQUAL_FILTERS, "submitted_after")
        for paged in (False, True)
    }
    filters = ((), ("status",), ("configuration_id",), ("configuration_id", "status"))
    listing |= {f"list_builds by {names}": builds.list_builds(names) for names in filters}
    return {**STATEMENTS, **listing}


def sql_of(dialect: str) -> dict[str, str]:
    """Compile every statement that a database runs."""
    spoken = DIALECTS[dialect]
    return {
        name: compile_statement(spoken, statement).sql
        for name, statement in statements().items()
        if spoken.chains_changes or name not in CHAINS
    }
