"""What the tables have in common: types, names of constraints, partial indexes."""

from sqlalchemy import (
    Column,
    Index,
    MetaData,
    String,
    Text,
    literal_column,
)
from sqlalchemy.dialects.mssql import NVARCHAR
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.sql.elements import ColumnElement

NAMING = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
metadata = MetaData(naming_convention=NAMING)

Id = String(36).with_variant(UUID(as_uuid=False), "postgresql")
Name = String(200).with_variant(NVARCHAR(200), "mssql")
Word = String(20)
Digest = String(80)
Json = Text().with_variant(NVARCHAR(), "mssql")


def id_column(name: str, *, nullable: bool = False) -> Column[str]:
    """Make a column of identifiers."""
    return Column(name, Id, nullable=nullable)


def literal(value: str | int) -> ColumnElement[str | int]:
    """Write a constant into the SQL itself, so that partial indexes can be matched with it."""
    return literal_column(f"'{value}'" if isinstance(value, str) else str(value))


def words(values: list[str]) -> str:
    """Write values as the members of an IN list."""
    return ", ".join(f"'{value}'" for value in values)


def partial_index(
    name: str, *columns: Column[object], where: ColumnElement[bool], unique: bool = False
) -> None:
    """Add an index of some rows of a table."""
    Index(
        name,
        *columns,
        unique=unique,
        postgresql_where=where,
        sqlite_where=where,
        mssql_where=where,
    )
