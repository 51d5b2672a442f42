"""Describe the columns of an output file: a Table Schema of Frictionless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ade_engine.package.field import Field
from ade_engine.writing.typed_columns import TypedColumn

_TYPES = {"number": "number", "integer": "integer", "boolean": "boolean", "date": "date"}


def table_schema(columns: Sequence[TypedColumn], fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the Table Schema of a file; columns that are no fields are texts."""
    return {
        "fields": [_field(column, fields.get(column.name)) for column in columns],
        "missingValues": [""],
    }


def _field(column: TypedColumn, declared: Field | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": column.name,
        "title": column.title,
        "type": _TYPES.get(column.type, "string"),
    }
    if column.type == "date" and column.has_times:
        described["type"] = "datetime"
        described["format"] = column.moments.replace("%.3f", ".%f")
    if declared is None:
        return described
    if declared.description:
        described["description"] = declared.description
    if declared.currency:
        described["currency"] = declared.currency
    constraints: dict[str, Any] = {
        name: True for name in ("required", "unique") if getattr(declared, name)
    }
    allowed = [value for value in declared.allowed if isinstance(value, str | int | float)]
    if allowed:
        constraints["enum"] = allowed
    if constraints:
        described["constraints"] = constraints
    return described
