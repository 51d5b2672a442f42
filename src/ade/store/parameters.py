"""The parameters of a statement, for one row or for many.

A statement is written once and takes its values from `Parameters`. Where a statement costs next to
nothing to run again (SQLite: no round trip), they are bind parameters, and the statement runs once
for each row. Where a round trip is expensive (PostgreSQL), they are the columns of a table in the
WITH clause of the statement, which is unnested from one array for each column. An insert of many
rows takes them from such a table in either case; on SQLite it is written with VALUES.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Protocol

from sqlalchemy import (
    CTE,
    BigInteger,
    Integer,
    SmallInteger,
    bindparam,
    column,
    func,
    select,
    values,
)
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import Text, TypeEngine

from ade.store import schema

_NEVER_IN_TEXT = "\0"
# How many rows a VALUES table holds; a larger one gains nothing.
PIECE_ROWS = (100, 10, 1)
_EXTRA_TYPES: dict[str, TypeEngine[Any]] = {
    "address": BigInteger(),
    "floor": BigInteger(),
    "timeout_ms_max": BigInteger(),
    "at": BigInteger(),
    "now": BigInteger(),
    "expires_at": BigInteger(),
    "first_id": schema.Id,
    "limit": Integer(),
    "places": Integer(),
    "seq": Integer(),
    "event_seq_max": Integer(),
    "registers": SmallInteger(),
    "new_fence": Integer(),
}


def type_of(name: str) -> TypeEngine[Any]:
    """Return the type of a row's field: that of the columns of that name, if there are any."""
    return _EXTRA_TYPES.get(name) or _column_types().get(name) or Text()


@cache
def _column_types() -> dict[str, TypeEngine[Any]]:
    """Map the names of columns to their types; those of a job decide where a name occurs twice."""
    first = (schema.jobs, schema.requests, schema.executions)
    others = [table for table in schema.metadata.sorted_tables if table not in first]
    types: dict[str, TypeEngine[Any]] = {}
    for table in (*first, *others):
        for column_ in table.c:
            types.setdefault(column_.name, column_.type)
    return types


class Parameters(Protocol):
    """Offer the values that a statement works on, by the names of the row's fields."""

    is_one_row: bool

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        """Return the value of a field."""
        ...


class RowSource(Parameters, Protocol):
    """Offer rows as a table, and what is equal in all of them as bind parameters."""

    def __init__(self, fields: Sequence[str]) -> None:
        """Take the fields in which the rows differ."""
        ...

    @staticmethod
    def calls(
        sql: str, each: Sequence[Sequence[Any]], once: Sequence[Any]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Return the SQL and the parameters for rows by columns, and for what they share."""
        ...


class BindParameters:
    """Offer bind parameters: the statement runs once for each row."""

    is_one_row = True

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        """Return a bind parameter."""
        return bindparam(name, type_=type_of(name))


class _RowTable:
    """Offer the columns of a table in the statement's WITH clause."""

    is_one_row = False
    _cte: CTE

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        """Return a column, or a bind parameter for what all rows have in common."""
        return self._cte.c[name] if name in self._cte.c else BindParameters()[name]


class UnnestedRows(_RowTable):
    """Unnest the table from arrays: the statement runs once for all rows."""

    def __init__(self, fields: Sequence[str]) -> None:
        arrays = [bindparam(name, type_=ARRAY(_array_type(name))) for name in fields]
        table = func.unnest(*arrays).table_valued(
            *[column(name, _array_type(name)) for name in fields], name="unnested"
        )
        unnested = table.render_derived()
        self._cte = select(*[unnested.c[name] for name in fields]).cte("input")

    @staticmethod
    def calls(
        sql: str, each: Sequence[Sequence[Any]], once: Sequence[Any]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Pass all rows at once, as an array for each column."""
        yield sql, [*map(array_literal, each), *once]


class ValuesRows(_RowTable):
    """Write the table with VALUES: the statement runs once for some of the rows."""

    def __init__(self, fields: Sequence[str]) -> None:
        columns = [column(name, type_of(name)) for name in fields]
        row = tuple(BindParameters()[name] for name in fields)
        self._cte = values(*columns, name="listed").data([row]).cte("input")

    @staticmethod
    def calls(
        sql: str, each: Sequence[Sequence[Any]], once: Sequence[Any]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Pass rows in groups of few sizes, so that few statements are ever prepared."""
        rows, start = list(zip(*each, strict=True)), 0
        for size in PIECE_ROWS:
            while len(rows) - start >= size:
                piece = rows[start : start + size]
                yield _with_rows(sql, size), [*chain.from_iterable(piece), *once]
                start += size


@lru_cache(maxsize=256)
def _with_rows(sql: str, rows: int) -> str:
    """Repeat the one row of a VALUES table."""
    before, _, after = sql.partition("(VALUES (")
    row, _, rest = after.partition("))")
    return f"{before}(VALUES {', '.join([f'({row})'] * rows)}){rest}"


def _array_type(name: str) -> TypeEngine[Any]:
    kind = type_of(name)
    if kind is schema.Id:
        return UUID(as_uuid=False)
    if isinstance(kind, BigInteger | Integer | SmallInteger):
        return kind
    return Text()


def array_literal(values: Sequence[Any]) -> str:
    """Write a column as a PostgreSQL array."""
    first = values[0]
    if values.count(first) == len(values):  # most columns of a batch hold one value
        elements = [_element(first)] * len(values)
    elif type(first) is int and None not in values:
        elements = [str(value) for value in values]
    elif type(first) is str and (texts := _texts(values)) is not None:
        return texts
    else:
        elements = [_element(value) for value in values]
    return "{" + ",".join(elements) + "}"


def _texts(values: Sequence[Any]) -> str | None:
    """Write texts as an array, all at once; return None if they are not only texts."""
    try:
        joined = _NEVER_IN_TEXT.join(values)
    except TypeError:
        return None
    if joined.count(_NEVER_IN_TEXT) != len(values) - 1:
        return None  # the database will refuse it
    escaped = joined.replace("\\", "\\\\").replace('"', '\\"')
    return '{"' + escaped.replace(_NEVER_IN_TEXT, '","') + '"}'


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        if "\\" in value or '"' in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    return str(value)
