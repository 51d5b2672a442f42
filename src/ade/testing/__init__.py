"""What tests against ADE need, without a database: `from ade.testing import MemoryStore`."""

from ade.testing.invariants import ImpossibleRow
from ade.testing.memory import MemoryStore

__all__ = ["ImpossibleRow", "MemoryStore"]
