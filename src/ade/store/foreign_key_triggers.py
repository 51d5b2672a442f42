"""Check the foreign keys of new rows once for each statement instead of once for each row.

PostgreSQL looks up the parent of every row with its own query: for the four foreign keys of a
request, that was two fifths of the server's work for a job. A trigger at the end of the statement
checks all of its rows together, and rejects them as a foreign key does. It is enough because these
keys never change and their parents are never deleted: nothing deletes a workspace, and a deleted
document, configuration or build keeps its row.
"""

from typing import Any

from sqlalchemy import DDL, Dialect, ForeignKeyConstraint, Table, event
from sqlalchemy.schema import ExecutableDDLElement

# Each parent is looked up by its key: a list of all parents could be long.
_FUNCTION = """
CREATE FUNCTION {table}_have_parents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added WHERE {is_orphan}
  ) THEN
    RAISE foreign_key_violation USING MESSAGE =
      'a row of {table} names a parent that does not exist, against a foreign key';
  END IF;
  RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER {table}_have_parents AFTER INSERT ON {table}
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {table}_have_parents()
"""
_CHECKS_EACH_ROW = "postgresql"


def check_by_statement(table: Table) -> None:
    """Replace the foreign keys of a table by a trigger where that is cheaper."""
    keys = sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
    for key in keys:
        key.ddl_if(callable_=_keeps_foreign_keys)
    is_orphan = "\n      OR ".join(_is_orphan(key) for key in keys)
    for text in (_FUNCTION, _TRIGGER):
        statement: ExecutableDDLElement = DDL(  # type: ignore[no-untyped-call]
            text.format(table=table.name, is_orphan=is_orphan)
        )
        event.listen(table, "after_create", statement.execute_if(dialect=_CHECKS_EACH_ROW))


def _keeps_foreign_keys(*_: Any, dialect: Dialect, **__: Any) -> bool:
    return dialect.name != _CHECKS_EACH_ROW


def _is_orphan(key: ForeignKeyConstraint) -> str:
    """Match a row whose parent does not exist; a row without a parent is not an orphan."""
    named = [f"added.{column.name} IS NOT NULL" for column in key.columns if column.nullable]
    same = [
        f"{one.column.table.name}.{one.column.name} = added.{one.parent.name}"
        for one in key.elements
    ]
    found = f"SELECT true FROM {key.referred_table.name} WHERE {' AND '.join(same)}"
    return f"({' AND '.join([*named, f'({found}) IS NULL'])})"
