"""Check foreign keys once for each statement instead of once for each row, on PostgreSQL.

PostgreSQL looks up the parent of every row with its own query: for the four foreign keys of a
request, that was two fifths of the server's work for a job, and the key of a job added as much
again. Triggers at the end of a statement check all of its rows together, and reject them as a
foreign key does:

    a row is inserted                  its parents must exist
    a parent is deleted                no row may name it
    a key of either side is changed    rejected: none of these keys ever changes

What they do not do: a foreign key also locks the parent. A parent that is deleted while another
transaction inserts a row that names it is not noticed. Nothing deletes a workspace, a document, a
configuration or a build; a request is deleted only by the transaction that has locked and deleted
its job. `ade db check` looks for orphans all the same.
"""

from typing import Any

from sqlalchemy import DDL, Dialect, ForeignKeyConstraint, Table, event
from sqlalchemy.schema import ExecutableDDLElement

# Each parent is looked up by its key: a list of all parents could be long.
_INSERT = """
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
_ON_INSERT = """
CREATE TRIGGER {table}_have_parents AFTER INSERT ON {table}
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {table}_have_parents()
"""
_DELETE = """
CREATE FUNCTION {parent}_keep_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM gone WHERE EXISTS (SELECT FROM {table} WHERE {names_it})
  ) THEN
    RAISE foreign_key_violation USING MESSAGE =
      'a row of {table} names a row of {parent} that was deleted, against a foreign key';
  END IF;
  RETURN NULL;
END $$
"""
_ON_DELETE = """
CREATE TRIGGER {parent}_keep_{table} AFTER DELETE ON {parent}
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION {parent}_keep_{table}()
"""
_CHANGE = """
CREATE FUNCTION {table}_keys_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE foreign_key_violation USING MESSAGE =
    'the keys between {table} and their parents never change, against a foreign key';
END $$
"""
# A trigger with a list of columns costs nothing for statements that set none of them.
_ON_CHANGE = """
CREATE TRIGGER {changed}_keys_stay_for_{table} BEFORE UPDATE OF {columns} ON {changed}
FOR EACH ROW EXECUTE FUNCTION {table}_keys_stay()
"""
_CHECKS_EACH_ROW = "postgresql"


def check_by_statement(table: Table) -> None:
    """Replace the foreign keys of a table by triggers where these are cheaper."""
    keys = sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
    for key in keys:
        key.ddl_if(callable_=_keeps_foreign_keys)
    for text in _statements(table, keys):
        statement: ExecutableDDLElement = DDL(text)  # type: ignore[no-untyped-call]
        event.listen(table, "after_create", statement.execute_if(dialect=_CHECKS_EACH_ROW))


def _statements(table: Table, keys: list[ForeignKeyConstraint]) -> list[str]:
    """Write the functions and the triggers that stand in for foreign keys."""
    name = table.name
    is_orphan = "\n      OR ".join(_is_orphan(key) for key in keys)
    written = [_INSERT.format(table=name, is_orphan=is_orphan), _ON_INSERT.format(table=name)]
    written.append(_CHANGE.format(table=name))
    own = sorted({column.name for key in keys for column in key.columns})
    written.append(_ON_CHANGE.format(table=name, changed=name, columns=", ".join(own)))
    for key in keys:
        parent = key.referred_table.name
        columns = ", ".join(one.column.name for one in key.elements)
        written += [
            _DELETE.format(table=name, parent=parent, names_it=_names_it(key)),
            _ON_DELETE.format(table=name, parent=parent),
            _ON_CHANGE.format(table=name, changed=parent, columns=columns),
        ]
    return written


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


def _names_it(key: ForeignKeyConstraint) -> str:
    """Match the rows that name a parent which was deleted."""
    return " AND ".join(
        f"{one.parent.table.name}.{one.parent.name} = gone.{one.column.name}"
        for one in key.elements
    )
