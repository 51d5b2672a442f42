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
CHAINS = {"claim", "claim_of_kinds"}
EQUAL_FILTERS = (
    "status",
    "kind",
    "target_id",
    "priority",
    "submitted_by",
    "rerun_of",
    "configuration_id",
    "document_id",
    "evaluation",
)


def statements() -> dict[str, Statement]:
    """Return every statement by name."""
    listing = {
        f"list_jobs by {name}": reads.list_jobs((name,), paged=paged)
        for name in (*EQUAL_FILTERS, "submitted_after", "submitted_before")
        for paged in (False, True)
    }
    listing |= {
        f"list_jobs by some of {name}": reads.list_jobs(
            (name,), paged=True, several=frozenset({name})
        )
        for name in EQUAL_FILTERS
    }
    listing |= {
        f"count_jobs by {names}": reads.count_jobs(names, several)
        for names, several in (
            ((), frozenset[str]()),
            (("kind", "submitted_before"), frozenset[str]()),
            (EQUAL_FILTERS, frozenset(EQUAL_FILTERS)),
        )
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
