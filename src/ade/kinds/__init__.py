"""Say what can be asked for: one module per job type, others by the entry point `ade.kinds`."""

from ade.kinds.kind import Asked, Digest, JobIO, Kind, OutputSpec, Prepared
from ade.kinds.registry import Kinds, load_kinds

__all__ = ["Asked", "Digest", "JobIO", "Kind", "Kinds", "OutputSpec", "Prepared", "load_kinds"]
