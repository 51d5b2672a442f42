"""Declare a field of the output: `FIELD = Field(...)` in `columns/<field>.py`."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ade_engine.package.author_errors import Misuse

ORDER_DEFAULT = 1000

# Quoted texts, escaped characters, colours and currencies in brackets, and the codes themselves.
_NUMBER_FORMAT = re.compile(
    r"""(?:"[^"\x00-\x1f]*"|\\[^\x00-\x1f]|\[[^\[\]\x00-\x1f]*\]|_[^\x00-\x1f]"""
    r"""|[0#?.,%/@;:dmyhsDMYHS $€£¥+()E-]|AM/PM)*"""
)
_CURRENCY = re.compile("[A-Z]{3}|")


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
    have. `totals`: if a table has a total row, it must be the sum of the column. `format` is the
    number format of its numbers or dates in the workbook, as spreadsheet programs write it;
    `currency` is the code of a currency, which is shown behind its numbers.
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
    format: str = ""
    currency: str = ""

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
        _expect(_is_number_format(self.format), 'format must be a number format, such as "0.00"')
        _expect(
            isinstance(self.currency, str) and _CURRENCY.fullmatch(self.currency) is not None,
            'currency must be a code of three capital letters, such as "EUR"',
        )
        _expect(not (self.format and self.currency), "give format or currency, not both")
        object.__setattr__(self, "synonyms", tuple(self.synonyms))
        object.__setattr__(self, "allowed", tuple(self.allowed))
        object.__setattr__(self, "type", FieldType(self.type))


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Misuse(f"Field: {otherwise}")


def _is_number_format(code: object) -> bool:
    """Return whether spreadsheet programs can read a number format; others damage a file."""
    return isinstance(code, str) and len(code) <= 255 and _NUMBER_FORMAT.fullmatch(code) is not None


def _finite(number: object) -> bool:
    return isinstance(number, int | float) and math.isfinite(number)


def _known_types(wrong: object) -> str:
    known = ", ".join(FieldType)
    near = difflib.get_close_matches(str(wrong), list(FieldType), n=1)
    return f"{known}; did you mean {str(near[0])!r}?" if near else known
