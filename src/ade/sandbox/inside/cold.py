"""Run one order in a fresh interpreter, behind walls that stand already.

`python -I -B cold.py SOURCE PATH...`
"""

import json
import os
import sys


def main():
    """Read the order that was left in the job's folder, and run it."""
    source, *paths = sys.argv[1:]
    sys.path[:0] = [*paths, source]
    from ade.sandbox.inside import child

    with open(".order.json", encoding="utf-8") as file:
        order = json.load(file)
    os.unlink(".order.json")
    child.furnish()
    status = child.run(order)
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
