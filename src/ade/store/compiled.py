"""Statements in the words of one database, compiled once and kept."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from sqlalchemy.sql.elements import ColumnElement

from ade.store.dialects.base import Dialect
from ade.store.given import GivenRow, GivenRows, array_literal
from ade.store.statements import STATEMENTS, Statement

INSERT_FORMS_MAX = 64

Rewrite = Callable[[str, str], str]


Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Hold the SQL of a statement and how a row, or the columns of many, become its parameters."""

    sql: str
    arrange: Callable[[Values], Values]
    arrange_many: Callable[[Sequence[Values]], Values]


@dataclass(frozen=True, slots=True)
class Insert:
    """Hold a statement for many rows: what it takes from each, and what it takes once for all."""

    sql: str
    each: tuple[str, ...]
    once: tuple[str, ...]
    constants: Mapping[str, Any]


class _Noting:
    """Give bind parameters, and note which were asked for."""

    is_one_row = True

    def __init__(self) -> None:
        self.used: dict[str, None] = {}

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        self.used[name] = None
        return GivenRow()[name]


def compile_statement(dialect: Dialect, statement: Statement) -> Compiled:
    """Spell a statement for a database, with positional parameters."""
    given: Any = GivenRow()
    if statement.many and dialect.takes_many:
        given = GivenRows(fields_used(dialect, statement))
    sql, names, values = spelled(dialect, statement.build(dialect, given))
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
    """Spell a statement for many rows that are equal in some fields."""
    assert dialect.given_rows is not None
    each = tuple(name for name in fields_used(dialect, statement) if name not in once)
    sql, names, values = spelled(dialect, statement.build(dialect, dialect.given_rows(each)))
    assert tuple(names[: len(each)]) == each, "the rows stand before what is said once"
    constants = {name: values[name] for name in names if name not in statement.fields}
    return Insert(sql, each, tuple(names[len(each) :]), constants)


def fields_used(dialect: Dialect, statement: Statement) -> tuple[str, ...]:
    """Name the fields that a statement takes from a row."""
    noting = _Noting()
    statement.build(dialect, noting)
    return tuple(noting.used)


def spelled(dialect: Dialect, built: Any) -> tuple[str, list[str], Mapping[str, Any]]:
    """Spell SQL with positional parameters; return it with their names and known values."""
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
        """Return a statement of the kernel."""
        return self._kept.get(name) or self._keep(name, STATEMENTS[name])

    def adhoc(self, key: Any, make: Callable[[], Statement]) -> Compiled:
        """Return a statement that depends on what was asked, such as a filtered list."""
        return self._kept.get(key) or self._keep(key, make())

    def insert(self, name: str, once: frozenset[str]) -> Insert:
        """Return a statement for many rows that are equal in some fields.

        Clients decide what is equal, so the number of forms is bounded: beyond it, each row is
        given whole.
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
