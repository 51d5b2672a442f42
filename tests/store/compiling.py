"""Every statement of the store, in the words of each database."""

from ade.store import reading
from ade.store.compiled import compile_statement
from ade.store.dialects.base import Dialect
from ade.store.dialects.mssql import MssqlDialect
from ade.store.dialects.postgres import PostgresDialect
from ade.store.dialects.sqlite import SqliteDialect
from ade.store.library import builds, configurations, documents, drafts, versions
from ade.store.statements import STATEMENTS, Statement

DIALECTS: dict[str, Dialect] = {
    "sqlite": SqliteDialect(),
    "postgresql": PostgresDialect(),
    "mssql": MssqlDialect(),
}
LIBRARY = (builds, configurations, documents, drafts, versions)
# A statement of several changes runs only where one statement may hold them.
CHAINS = {"claim"}


def statements() -> dict[str, Statement]:
    """Return the statements of the kernel and of the doors, by name."""
    named = {n.lower(): s for n, s in vars(reading).items() if isinstance(s, Statement)}
    listing = {
        f"list_jobs by {name}": reading.list_jobs((name,), paged=paged)
        for name in (*reading.EQUAL_FILTERS, "submitted_after")
        for paged in (False, True)
    }
    library = {
        f"{module.__name__.rpartition('.')[2]} {name.lower()}": statement
        for module in LIBRARY
        for name, statement in vars(module).items()
        if isinstance(statement, Statement)
    }
    return {**STATEMENTS, **named, **listing, **library}


def sql_of(dialect: str) -> dict[str, str]:
    """Spell every statement that a database runs."""
    spoken = DIALECTS[dialect]
    return {
        name: compile_statement(spoken, statement).sql
        for name, statement in statements().items()
        if spoken.chains_changes or name not in CHAINS
    }
