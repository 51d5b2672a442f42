"""Compile statements for one database, once each, and arrange their parameters.

A statement for many rows takes once what is equal in all of them. The jobs of a batch differ in
their identifiers, keys and payloads, and seldom in anything else: to send, bind and read the other
dozen columns a thousand times costs more than the insert. The ends of a batch of attempts are alike
in the same way.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from sqlalchemy.sql.elements import ColumnElement

from ade.store.dialects.dialect import Dialect
from ade.store.parameters import BindParameters, UnnestedRows, array_literal
from ade.store.sql import STATEMENTS, Statement

# Forms of statements for many rows that are kept. Which columns are equal depends on the clients.
INSERT_FORMS_MAX = 64

# Takes the name and the SQL of a statement, and returns other SQL for it.
Rewrite = Callable[[str, str], str]
Values = tuple[Any, ...]
Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Hold the SQL of a statement, and how one row or many become its parameters."""

    sql: str
    arrange: Callable[[Values], Values]
    arrange_many: Callable[[Sequence[Values]], Values]


@dataclass(frozen=True, slots=True)
class Insert:
    """Hold a statement for many rows: the fields taken from each row, and those taken once."""

    sql: str
    each: tuple[str, ...]
    once: tuple[str, ...]
    constants: Mapping[str, Any]


class _FieldRecorder:
    """Return bind parameters, and record the fields that a statement uses."""

    is_one_row = True

    def __init__(self) -> None:
        self.used: dict[str, None] = {}

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        self.used[name] = None
        return BindParameters()[name]


def compile_statement(dialect: Dialect, statement: Statement) -> Compiled:
    """Compile a statement for a database, with positional parameters."""
    parameters: Any = BindParameters()
    if statement.many and dialect.takes_many:
        parameters = UnnestedRows(fields_used(dialect, statement))
    sql, names, values = _compile_sql(dialect, statement.build(dialect, parameters))
    fields = statement.fields
    constants = tuple(values[name] for name in names if name not in fields)
    places, seen = [], 0
    for name in names:
        if name in fields:
            places.append(fields.index(name))
        else:
            places.append(len(fields) + seen)
            seen += 1
    return Compiled(sql, _arrangement(places, constants), _arrangement_of_many(places, constants))


def compile_insert(dialect: Dialect, statement: Statement, once: frozenset[str]) -> Insert:
    """Compile a statement for many rows that are equal in some fields."""
    assert dialect.row_source is not None
    each = tuple(name for name in fields_used(dialect, statement) if name not in once)
    sql, names, values = _compile_sql(dialect, statement.build(dialect, dialect.row_source(each)))
    assert tuple(names[: len(each)]) == each, "the parameters of the rows come first"
    constants = {name: values[name] for name in names if name not in statement.fields}
    return Insert(sql, each, tuple(names[len(each) :]), constants)


def fields_used(dialect: Dialect, statement: Statement) -> tuple[str, ...]:
    """Return the fields that a statement takes from a row."""
    recorder = _FieldRecorder()
    statement.build(dialect, recorder)
    return tuple(recorder.used)


def _compile_sql(dialect: Dialect, built: Any) -> tuple[str, list[str], Mapping[str, Any]]:
    """Return SQL with positional parameters, their names, and the values that are constant."""
    compiled = built.compile(dialect=dialect.core, compile_kwargs={"render_postcompile": True})
    sql = re.sub(r"\s+", " ", str(compiled)).strip()
    return sql, compiled.positiontup or [], compiled.params


def _arrangement(places: list[int], constants: Values) -> Callable[[Values], Values]:
    if not places:
        return lambda row: ()
    if len(places) == 1:
        only = places[0]
        return lambda row: ((*row, *constants)[only],)
    pick: Callable[[Values], Values] = itemgetter(*places)
    if not constants:
        return pick
    return lambda row: pick((*row, *constants))


def _arrangement_of_many(
    places: list[int], constants: Values
) -> Callable[[Sequence[Values]], Values]:
    """Turn rows into one array for each column that the statement uses."""

    def arrange(rows: Sequence[Values]) -> Values:
        columns = list(zip(*rows, strict=True))
        own = len(columns)
        return tuple(
            array_literal(columns[place]) if place < own else constants[place - own]
            for place in places
        )

    return arrange


class Compiler:
    """Compile statements by name on first use; `rewrite` lets a test break them on purpose."""

    def __init__(self, dialect: Dialect, rewrite: Rewrite | None = None) -> None:
        self.dialect = dialect
        self._rewrite = rewrite
        self._kept: dict[Any, Compiled] = {}
        self._inserts: dict[tuple[str, frozenset[str]], Insert] = {}

    def named(self, name: str) -> Compiled:
        """Return a statement by its name."""
        return self._kept.get(name) or self._keep(name, STATEMENTS[name])

    def adhoc(self, key: Any, make: Callable[[], Statement]) -> Compiled:
        """Return a statement whose text depends on the request, such as a filtered list."""
        return self._kept.get(key) or self._keep(key, make())

    def insert(self, name: str, once: frozenset[str]) -> Insert:
        """Return a statement for many rows that are equal in some fields.

        Clients decide what is equal, so the number of forms is bounded: beyond it, a statement
        takes every field from each row.
        """
        if len(self._inserts) >= INSERT_FORMS_MAX and (name, once) not in self._inserts:
            once = frozenset()
        form = self._inserts.get((name, once))
        if form is None:
            form = compile_insert(self.dialect, STATEMENTS[name], once)
            form = replace(form, sql=self._rewritten(name, form.sql))
            self._inserts[name, once] = form
        return form

    def _keep(self, key: Any, statement: Statement) -> Compiled:
        compiled = compile_statement(self.dialect, statement)
        compiled = replace(compiled, sql=self._rewritten(str(key), compiled.sql))
        self._kept[key] = compiled
        return compiled

    def _rewritten(self, name: str, sql: str) -> str:
        return sql if self._rewrite is None else self._rewrite(name, sql)


def calls(
    compiler: Compiler, name: str, columns: Columns, equal: frozenset[str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Return the SQL and the parameters to execute for rows that come by columns."""
    row_source = compiler.dialect.row_source
    if row_source is None:
        one = compiler.named(name)
        rows = zip(*[columns[field] for field in STATEMENTS[name].fields], strict=True)
        return ((one.sql, one.arrange(row)) for row in rows)
    insert = compiler.insert(name, equal - STATEMENTS[name].differs)
    each = [columns[field] for field in insert.each]
    constants = insert.constants
    once = [constants[f] if f in constants else columns[f][0] for f in insert.once]
    return row_source.calls(insert.sql, each, once)


def equal_in(columns: Columns) -> frozenset[str]:
    """Return the columns that hold one value only."""
    return frozenset(
        field for field, values in columns.items() if values.count(values[0]) == len(values)
    )
