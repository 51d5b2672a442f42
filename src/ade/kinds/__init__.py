"""Say what can be asked for: one module per job type, others by the entry point `ade.kinds`."""

from ade.kinds.kind import Asked, Digest, Kind, OutputSpec, Prepared, Workroom
from ade.kinds.registry import Kinds, load_kinds

__all__ = ["Asked", "Digest", "Kind", "Kinds", "OutputSpec", "Prepared", "Workroom", "load_kinds"]
