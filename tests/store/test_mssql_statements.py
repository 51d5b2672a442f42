"""SQL Server: no server can be had here, so every statement is compiled and parsed as T-SQL."""

import pytest
import sqlglot
from sqlglot import exp
from tests.store.compiling import sql_of

SQL = sql_of("mssql")


@pytest.mark.parametrize("name", SQL)
def test_a_statement_is_t_sql(name: str) -> None:
    (parsed,) = sqlglot.parse(SQL[name], dialect="tsql")
    assert parsed is not None
    assert not parsed.find(exp.Command), "sqlglot did not understand it"
    assert " LIMIT " not in SQL[name]
    assert "FOR UPDATE" not in SQL[name]
    assert "RETURNING" not in SQL[name]


@pytest.mark.parametrize("name", SQL)
def test_a_limit_has_an_order(name: str) -> None:
    """OFFSET ... FETCH is part of ORDER BY in T-SQL."""
    assert SQL[name].count("FETCH FIRST") == SQL[name].count("OFFSET ? ROWS")
    assert SQL[name].count("ORDER BY") >= SQL[name].count("FETCH FIRST")


def test_who_claims_locks_and_passes_over_what_is_locked() -> None:
    assert "FROM jobs WITH (UPDLOCK, READPAST, ROWLOCK)" in SQL["pick"]
    assert "ORDER BY jobs.rank, jobs.id OFFSET" in SQL["pick"]


def test_the_sweep_passes_over_what_is_locked() -> None:
    assert "WITH (UPDLOCK, READPAST, ROWLOCK)" in SQL["lock_free_jobs"]


def test_who_decides_locks() -> None:
    assert "WITH (UPDLOCK, ROWLOCK)" in SQL["lock_jobs"]
    assert "WITH (HOLDLOCK, ROWLOCK)" in SQL["read_builds"]


@pytest.mark.parametrize("name", ["renew", "move", "end_returning", "append", "request_stop"])
def test_changed_rows_are_returned_by_output(name: str) -> None:
    assert " OUTPUT inserted." in SQL[name]
