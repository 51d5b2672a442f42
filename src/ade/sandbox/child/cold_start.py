"""Run one spec in a fresh interpreter, in a process whose layers are applied already.

`python -s -B cold_start.py SOURCE PATH...`
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Read the spec that was left in the job's folder, and run it."""
    source, *paths = sys.argv[1:]
    sys.path[:1] = [*paths, source]  # instead of the folder of this script
    from ade.sandbox.child import job_process

    with open(job_process.SPEC_FILE, encoding="utf-8") as file:
        spec = json.load(file)
    os.unlink(job_process.SPEC_FILE)
    job_process.set_up_streams()
    status = job_process.run(spec)
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
