"""Let Typst start few threads: import this before anything is set or drawn.

It would start one for each core: on a large machine more than a job may have.
"""

import os

THREADS_MAX = 4

os.environ.setdefault("RAYON_NUM_THREADS", str(min(THREADS_MAX, os.cpu_count() or 1)))
