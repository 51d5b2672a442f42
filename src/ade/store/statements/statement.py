"""What is known of a statement before it is spelled for a database."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.sql.base import Executable

from ade.store.dialects.base import Dialect


@dataclass(frozen=True, slots=True)
class Statement:
    """Say how a statement is built, what it takes its values from, and whether it takes many.

    `differs` are the fields in which many rows of one insert differ, or are taken to.
    """

    build: Callable[[Dialect, Any], Executable]
    fields: tuple[str, ...]
    many: bool = True
    differs: frozenset[str] = frozenset()
