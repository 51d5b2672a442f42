"""Import matplotlib, which every cell with a figure needs.

When it is first imported, matplotlib looks through all fonts, which takes seconds, and insists on a
folder for its font cache. The zygote has no folder to write to, so matplotlib gets the path of one
that does not exist: the font list stays in memory, and forked jobs find it there.
"""

import atexit
import os
import shutil
import tempfile

from ade_engine.cell_outputs.figures import BACKEND

MISSING_FOLDER = "/nowhere"

_make_folder = tempfile.mkdtemp
tempfile.mkdtemp = lambda *args, **kwargs: MISSING_FOLDER  # type: ignore[assignment]
os.environ.setdefault("MPLBACKEND", BACKEND)
try:
    import matplotlib.pyplot  # noqa: F401

    import ade_engine.cell_outputs.matplotlib_backend  # noqa: F401
finally:
    tempfile.mkdtemp = _make_folder
    atexit.unregister(shutil.rmtree)  # nothing to delete: the folder was never made
