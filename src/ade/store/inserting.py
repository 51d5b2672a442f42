"""Write many rows by few statements, and hand over once what is equal in all of them.

The jobs of a batch differ in their identifiers, keys and payloads, and seldom in anything else: to
spell, send, bind and read the other dozen columns a thousand times costs more than the insert. The
ends of a batch of attempts are alike in the same way.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ade.store.compiled import Compiler
from ade.store.statements import STATEMENTS

Columns = Mapping[str, Sequence[Any]]


def calls(
    compiler: Compiler, name: str, columns: Columns, equal: frozenset[str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Return what to execute for rows, given by columns: statements and parameters."""
    given_rows = compiler.dialect.given_rows
    if given_rows is None:
        one = compiler.named(name)
        rows = zip(*[columns[field] for field in STATEMENTS[name].fields], strict=True)
        return ((one.sql, one.arrange(row)) for row in rows)
    insert = compiler.insert(name, equal - STATEMENTS[name].differs)
    each = [columns[field] for field in insert.each]
    constants = insert.constants
    once = [constants[f] if f in constants else columns[f][0] for f in insert.once]
    return given_rows.calls(insert.sql, each, once)


def equal_in(columns: Columns) -> frozenset[str]:
    """Name the columns that hold one value."""
    return frozenset(
        field for field, values in columns.items() if values.count(values[0]) == len(values)
    )
