"""Inserts of many rows: what is equal is handed over once, and the forms have an end."""

from itertools import combinations

import pytest
from tests.store.compiling import DIALECTS

from ade.store.compile import INSERT_FORMS_MAX, Compiler, calls, equal_in
from ade.store.parameters import array_literal
from ade.store.sql.submissions import NEW_JOB

ROWS = {name: tuple(f"{name} {number}" for number in range(230)) for name in NEW_JOB}
ALIKE = {name: (values[0],) * len(values) for name, values in ROWS.items()}


def test_columns_of_one_value_are_found() -> None:
    assert equal_in({"a": (1, 1), "b": (1, 2), "c": (None, None)}) == {"a", "c"}


def test_what_is_equal_is_bound_once() -> None:
    columns = {**ALIKE, "id": ROWS["id"]}
    compiler = Compiler(DIALECTS["sqlite"])
    statements = list(calls(compiler, "insert_jobs", columns, equal_in(columns)))
    assert [sql.count("(?)") for sql, _ in statements] == [100, 100, 10, 10, 10]
    assert sum(len(parameters) for _, parameters in statements) < 230 + 5 * len(NEW_JOB)
    assert tuple(statements[0][1][:100]) == ROWS["id"][:100]


def test_all_rows_are_one_statement_where_arrays_are() -> None:
    columns = {**ALIKE, "id": ROWS["id"]}
    compiler = Compiler(DIALECTS["postgresql"])
    [(sql, parameters)] = calls(compiler, "insert_jobs", columns, equal_in(columns))
    assert sql.count("[]") == 1
    assert parameters[0] == array_literal(ROWS["id"])


def test_a_database_that_takes_rows_one_by_one_gets_them_so() -> None:
    compiler = Compiler(DIALECTS["mssql"])
    statements = list(calls(compiler, "insert_jobs", ROWS, frozenset()))
    assert len(statements) == 230
    assert statements[7][1][1] == "id 7"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_there_are_only_so_many_forms(dialect: str) -> None:
    compiler = Compiler(DIALECTS[dialect])
    for equal in combinations(("pool", "status", "rank", "retries_left", "not_before", "usage"), 3):
        for more in ("target_id", "eligible", "error", "progress"):
            compiler.insert("insert_jobs", frozenset({*equal, more}))
    assert len(compiler._inserts) == INSERT_FORMS_MAX + 1  # the last takes every row whole
    assert "fence" not in compiler.insert("insert_jobs", frozenset({"history"})).each
    assert not compiler.insert("insert_jobs", frozenset({"history"})).once


@pytest.mark.parametrize(
    ("values", "encoded"),
    [
        (["a", "b"], '{"a","b"}'),
        (['a"b', "c\\d"], '{"a\\"b","c\\\\d"}'),
        (["a", None], '{"a",NULL}'),
        (["", "x"], '{"","x"}'),
        ([1, 2], "{1,2}"),
        ([None, None], "{NULL,NULL}"),
    ],
)
def test_a_column_is_encoded_as_an_array(values: list[object], encoded: str) -> None:
    assert array_literal(values) == encoded


def test_a_nul_never_makes_two_texts_of_one() -> None:
    assert array_literal(["a", "b\0c"]) == '{"a","b\0c"}'
