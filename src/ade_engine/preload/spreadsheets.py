"""Load what every run of a configuration needs: the whole engine.

Everything here leaves the process with one thread: a process with threads cannot be forked safely.
polars starts its threads when it first computes something, so nothing is computed with it.
"""

import numpy.ma  # noqa: F401 - polars imports it when it is first needed

# The entries that run with this module imported, and through them the whole engine.
from ade_engine.entry import activate, check, normalize, preview  # noqa: F401
from ade_engine.tables.forest import default_weights

default_weights()
