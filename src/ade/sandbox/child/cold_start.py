"""Run one order in a fresh interpreter, in the sandbox that stand already.

`python -I -B cold.py SOURCE PATH...`
"""

import json
import os
import sys


def main():
    """Read the order that was left in the job's folder, and run it."""
    source, *paths = sys.argv[1:]
    sys.path[:0] = [*paths, source]
    from ade.sandbox.child import job_process

    with open(".spec.json", encoding="utf-8") as file:
        spec = json.load(file)
    os.unlink(".spec.json")
    job_process.furnish()
    status = job_process.run(spec)
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
