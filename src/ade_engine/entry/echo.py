"""Give back a value, as slowly or as badly as asked."""

import os
import sys
import time
from typing import Any

from ade_engine.channel import Channel


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Print, take the time, report the steps, then return the value or go wrong."""
    if inputs["print"]:
        sys.stdout.write(inputs["print"] + "\n")
    pieces = max(inputs["steps"], 1)
    for step in range(pieces):
        time.sleep(inputs["sleep_ms"] / 1000 / pieces)
        if inputs["steps"]:
            channel.progress(step + 1, pieces, f"step {step + 1} of {pieces}")
    if inputs["fail"] == "raise":
        raise ValueError("asked to fail")
    if inputs["fail"] == "exit":
        os._exit(3)
    if inputs["fail"] == "abort":
        os.abort()
    return inputs["value"]
