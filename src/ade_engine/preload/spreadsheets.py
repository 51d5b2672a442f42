"""Do once, before any job is forked, what each run would otherwise do again: import this."""

import numpy.ma  # noqa: F401 - polars imports it when it is first needed

from ade_engine.structure.forest import default_weights

default_weights()
