"""Run one snippet without a sandbox, as a control: the source on stdin, its value on stdout."""

import json
import os
import sys


def main() -> None:
    """Run the cell; whatever it prints goes to stderr."""
    given = json.load(sys.stdin)
    answer = os.dup(1)
    os.dup2(2, 1)
    os.chdir(given["folder"])
    os.mkdir("artifacts")
    os.environ["TMPDIR"] = os.environ["HOME"] = given["folder"]
    sys.path.insert(0, given["source_folder"])
    from ade_engine.channel import Channel
    from ade_engine.entry.cell import main as run_cell

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        value = run_cell(given["inputs"], Channel(nowhere))
    os.write(answer, json.dumps(value).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
