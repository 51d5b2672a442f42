"""Statements in the words of one database, compiled once and kept."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from sqlalchemy.sql.elements import ColumnElement

from ade.store.dialects.base import Dialect
from ade.store.given import GivenRow, GivenRows, array_literal
from ade.store.statements import STATEMENTS, Statement

Rewrite = Callable[[str, str], str]


Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Hold the SQL of a statement and how a row, or the columns of many, become its parameters."""

    sql: str
    arrange: Callable[[Values], Values]
    arrange_many: Callable[[Sequence[Values]], Values]


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
    noting = _Noting()
    built: Any = statement.build(dialect, noting)
    if statement.many and dialect.takes_many:
        built = statement.build(dialect, GivenRows(tuple(noting.used)))
    compiled = built.compile(dialect=dialect.core, compile_kwargs={"render_postcompile": True})
    names: list[str] = compiled.positiontup or []
    fields = statement.fields
    constants = tuple(compiled.params[name] for name in names if name not in fields)
    places, seen = [], 0
    for name in names:
        if name in fields:
            places.append(fields.index(name))
        else:
            places.append(len(fields) + seen)
            seen += 1
    sql = re.sub(r"\s+", " ", str(compiled)).strip()
    return Compiled(sql, _arrangement(places, constants), _arrangement_of_many(places, constants))


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

    def named(self, name: str) -> Compiled:
        """Return a statement of the kernel."""
        return self._kept.get(name) or self._keep(name, STATEMENTS[name])

    def adhoc(self, key: Any, make: Callable[[], Statement]) -> Compiled:
        """Return a statement that depends on what was asked, such as a filtered list."""
        return self._kept.get(key) or self._keep(key, make())

    def _keep(self, key: Any, statement: Statement) -> Compiled:
        compiled = compile_statement(self.dialect, statement)
        if self._rewrite is not None:
            sql = self._rewrite(str(key), compiled.sql)
            compiled = replace(compiled, sql=sql)
        self._kept[key] = compiled
        return compiled
