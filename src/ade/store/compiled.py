"""Statements in the words of one database, compiled once and kept."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ade.store.dialects.base import Dialect
from ade.store.statements import STATEMENTS, Statement

Rewrite = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Hold the SQL of a statement and how a row becomes its parameters."""

    sql: str
    arrange: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    many: bool


def compile_statement(dialect: Dialect, statement: Statement) -> Compiled:
    """Spell a statement for a database, with positional parameters."""
    given = dialect.given(statement.fields, many=statement.many)
    built: Any = statement.build(dialect, given)
    compiled = built.compile(dialect=dialect.core, compile_kwargs={"render_postcompile": True})
    names: list[str] = compiled.positiontup or []
    constants = tuple(compiled.params[name] for name in names if name not in statement.fields)
    places, seen = [], 0
    for name in names:
        if name in statement.fields:
            places.append(statement.fields.index(name))
        else:
            places.append(len(statement.fields) + seen)
            seen += 1
    sql = re.sub(r"\s+", " ", str(compiled)).strip()
    return Compiled(sql, _arrangement(places, constants), statement.many)


def _arrangement(
    places: list[int], constants: tuple[Any, ...]
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    if not places:
        return lambda row: ()
    if len(places) == 1:
        only = places[0]
        return lambda row: ((*row, *constants)[only],)
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(*places)
    if not constants:
        return pick
    return lambda row: pick((*row, *constants))


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
            compiled = Compiled(sql, compiled.arrange, compiled.many)
        self._kept[key] = compiled
        return compiled
