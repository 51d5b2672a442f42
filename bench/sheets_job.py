"""The job that `bench.sheets` times: twelve fields, changed and checked, in two notations.

`PACKAGE` is a config package whose functions take whole columns; `change` and `wrong` do the same
to one value, for the programs that have only values.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FIELD = (
    "from ade_engine import Field\n\nFIELD = Field(label={label!r}, type={kind!r}, order={order})\n"
)

_KINDS = {
    "Member ID": "text",
    "First name": "text",
    "Last name": "text",
    "Email": "text",
    "Department": "text",
    "City": "text",
    "Salary": "number",
    "Rate": "number",
    "Birth date": "date",
    "Hired at": "date",
    "Active": "boolean",
    "Note": "text",
}

_FUNCTIONS = {
    "Member ID": """
def transform_column(column):
    return column.strip().upper()


def validate_column(column):
    right = column.matches(r"[A-Z]{2}\\d{6,7}")
    return column.issues_where(~right, code="format", message="Wrong.")
""",
    "First name": """
def transform_column(column):
    return column.squeeze().title()
""",
    "Last name": """
def transform_column(column):
    return column.squeeze().title()
""",
    "Email": """
def transform_column(column):
    return column.strip().lower()


def validate_column(column):
    right = column.matches(r"[^@\\s]+@[^@\\s]+")
    return column.issues_where(~right, code="address", message="Wrong.")
""",
    "City": """
def transform_column(column):
    return column.strip()
""",
    "Salary": """
def transform_column(column):
    return column.round(2)


def validate_column(column):
    return column.issues_where(column < 0, code="negative", message="Wrong.")
""",
    "Rate": """
def transform_column(column):
    return column.round(4)
""",
}


def write_package(folder: Path) -> Path:
    """Write the config package."""
    columns = folder / "columns"
    columns.mkdir(parents=True, exist_ok=True)
    for order, (label, kind) in enumerate(_KINDS.items(), 1):
        text = _FIELD.format(label=label, kind=kind, order=order)
        functions = _FUNCTIONS.get(label, "")
        name = label.lower().replace(" ", "_")
        (columns / f"{name}.py").write_text(text + ("\n" + functions if functions else ""))
    return folder


_MEMBER = re.compile(r"[A-Z]{2}\d{6,7}")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")

CHANGES: list[Callable[[Any], Any]] = [
    lambda value: value.strip().upper(),
    lambda value: " ".join(value.split()).title(),
    lambda value: " ".join(value.split()).title(),
    lambda value: value.strip().lower(),
    lambda value: value.strip(),
    lambda value: value.strip(),
    lambda value: round(value, 2),
    lambda value: round(value, 4),
    lambda value: value.date() if isinstance(value, dt.datetime) else value,
    lambda value: value,
    bool,
    lambda value: value.strip(),
]

CHECKS: list[Callable[[Any], bool]] = [
    lambda value: _MEMBER.fullmatch(value) is None,
    lambda value: not isinstance(value, str),
    lambda value: not isinstance(value, str),
    lambda value: _ADDRESS.fullmatch(value) is None,
    lambda value: not isinstance(value, str),
    lambda value: not isinstance(value, str),
    lambda value: value < 0,
    lambda value: not isinstance(value, int | float),
    lambda value: not isinstance(value, dt.date),
    lambda value: not isinstance(value, dt.date),
    lambda value: not isinstance(value, bool),
    lambda value: not isinstance(value, str),
]


def per_cell(row: tuple[Any, ...]) -> tuple[list[Any], int]:
    """Change and check the values of one row; give the new values and how many are wrong."""
    changed = [
        None if value is None else change(value) for value, change in zip(row, CHANGES, strict=True)
    ]
    wrong = sum(
        value is not None and check(value) for value, check in zip(changed, CHECKS, strict=True)
    )
    return changed, wrong
