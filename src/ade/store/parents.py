"""Check that the parents of new rows exist once for a statement, not once for a row.

PostgreSQL asks for the parent of each row by a query of its own: for the four foreign keys of a
request, that was two fifths of what the server did for a job. A trigger at the end of the
statement looks at all of its rows together, and refuses them as a foreign key does. It stands on
that rows are only ever inserted on the one side, and never deleted on the other: nobody deletes a
workspace, and a document, configuration or build that was deleted keeps its row.
"""

from typing import Any

from sqlalchemy import DDL, Dialect, ForeignKeyConstraint, Table, event
from sqlalchemy.schema import ExecutableDDLElement

# The parent is asked for by its key, row by row: a list of all parents could be long.
_CHECKED = """
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
_CHECKING = """
CREATE TRIGGER {table}_have_parents AFTER INSERT ON {table}
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {table}_have_parents()
"""
_ROW_BY_ROW = "postgresql"


def check_together(table: Table) -> None:
    """Have the parents of a table's new rows checked by statement where that is cheaper."""
    keys = sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
    for key in keys:
        key.ddl_if(callable_=_checks_by_itself)
    is_orphan = "\n      OR ".join(_is_orphan(key) for key in keys)
    for text in (_CHECKED, _CHECKING):
        statement: ExecutableDDLElement = DDL(  # type: ignore[no-untyped-call]
            text.format(table=table.name, is_orphan=is_orphan)
        )
        event.listen(table, "after_create", statement.execute_if(dialect=_ROW_BY_ROW))


def _checks_by_itself(*_: Any, dialect: Dialect, **__: Any) -> bool:
    return dialect.name != _ROW_BY_ROW


def _is_orphan(key: ForeignKeyConstraint) -> str:
    """Match a row that names a parent which does not exist; one that names none is no orphan."""
    named = [f"added.{column.name} IS NOT NULL" for column in key.columns if column.nullable]
    same = [
        f"{one.column.table.name}.{one.column.name} = added.{one.parent.name}"
        for one in key.elements
    ]
    found = f"SELECT true FROM {key.referred_table.name} WHERE {' AND '.join(same)}"
    return f"({' AND '.join([*named, f'({found}) IS NULL'])})"
