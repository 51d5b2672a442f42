"""Do once what every cell with a figure would do again: import this before jobs are forked.

matplotlib looks through all fonts when it is first imported, which takes seconds, and insists on a
folder to write down what it found. There is none where it is imported for all: what it found stays
in memory, and each job has it from there.
"""

import atexit
import os
import shutil
import tempfile

NOWHERE = "/nowhere"

_make_folder = tempfile.mkdtemp
tempfile.mkdtemp = lambda *args, **kwargs: NOWHERE  # type: ignore[assignment]
os.environ.setdefault("MPLBACKEND", "Agg")
try:
    import matplotlib.pyplot  # noqa: F401
finally:
    tempfile.mkdtemp = _make_folder
    atexit.unregister(shutil.rmtree)  # it would delete at the end what never was
