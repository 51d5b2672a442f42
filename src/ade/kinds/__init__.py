"""Say what can be asked for: one module per job type, others by the entry point `ade.kinds`."""

from ade.kinds.kind import Kind, Prepared, Workroom
from ade.kinds.registry import Kinds, load_kinds

__all__ = ["Kind", "Kinds", "Prepared", "Workroom", "load_kinds"]
