"""Limit the threads that Typst starts. Import this before Typst compiles anything.

By default Typst starts one thread per core, which on a large machine exceeds the process limit of a
job.
"""

import os

THREADS_MAX = 4

os.environ.setdefault("RAYON_NUM_THREADS", str(min(THREADS_MAX, os.cpu_count() or 1)))
