"""Declare a field of the output: `FIELD = Field(...)` in `columns/<field>.py`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ade_engine.package.author_errors import Misuse

ORDER_DEFAULT = 1000


class FieldType(StrEnum):
    """The type of a field's cells in the output."""

    ANY = "any"
    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    DATE = "date"
    BOOLEAN = "boolean"


@dataclass(frozen=True)
class Field:
    """Describe one column of the output.

    `label` is its header (default: the file name in words). A `required` field must be found in
    every table, and its cells must not be empty. Cells are converted to `type` before `transform`
    and checked after it. Columns are sorted by `order`, then by name. `synonyms` are other headers
    of the field. `unique`: no value occurs twice in a table. `allowed`: the values that a cell may
    have. `totals`: if a table has a total row, it must be the sum of the column.
    """

    label: str = ""
    required: bool = False
    type: str = FieldType.ANY
    order: float = ORDER_DEFAULT
    synonyms: Sequence[str] = ()
    description: str = ""
    unique: bool = False
    allowed: Sequence[object] = ()
    totals: bool = False
    threshold: float | None = None

    def __post_init__(self) -> None:
        _expect(isinstance(self.label, str), "label must be a string")
        _expect(isinstance(self.description, str), "description must be a string")
        for flag in ("required", "unique", "totals"):
            _expect(isinstance(getattr(self, flag), bool), f"{flag} must be True or False")
        _expect(_finite(self.order), "order must be a number")
        _expect(self.threshold is None or _finite(self.threshold), "threshold must be a number")
        _expect(self.type in list(FieldType), f"type must be one of {_known_types(self.type)}")
        _expect(
            not isinstance(self.synonyms, str) and all(isinstance(s, str) for s in self.synonyms),
            'synonyms must be a list of strings, as in synonyms=["member no"]',
        )
        _expect(not isinstance(self.allowed, str), "allowed must be a list of values")
        object.__setattr__(self, "synonyms", tuple(self.synonyms))
        object.__setattr__(self, "allowed", tuple(self.allowed))
        object.__setattr__(self, "type", FieldType(self.type))


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Misuse(f"Field: {otherwise}")


def _finite(number: object) -> bool:
    return isinstance(number, int | float) and math.isfinite(number)


def _known_types(wrong: object) -> str:
    known = ", ".join(FieldType)
    near = difflib.get_close_matches(str(wrong), list(FieldType), n=1)
    return f"{known}; did you mean {str(near[0])!r}?" if near else known
