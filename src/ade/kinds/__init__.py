"""The job types: one module each, others by the entry point `ade.kinds`."""

from ade.kinds.kind import Digest, JobInputs, JobIO, Kind, OutputSpec, Prepared
from ade.kinds.registry import Kinds, load_kinds

__all__ = ["Digest", "JobIO", "JobInputs", "Kind", "Kinds", "OutputSpec", "Prepared", "load_kinds"]
