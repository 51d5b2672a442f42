"""Load what every run of a configuration needs."""

import numpy.ma  # noqa: F401 - polars imports it when it is first needed

from ade_engine.tables.forest import default_weights

default_weights()
