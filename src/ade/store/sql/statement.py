"""A statement before it is compiled for a database."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.sql.base import Executable

from ade.store.dialects.dialect import Dialect


@dataclass(frozen=True, slots=True)
class Statement:
    """Hold how a statement is built, the fields of its row, and whether it takes many rows.

    `differs` are the fields that a statement for many rows always takes from each row, even if they
    happen to be equal.
    """

    build: Callable[[Dialect, Any], Executable]
    fields: tuple[str, ...]
    many: bool = True
    differs: frozenset[str] = frozenset()
