"""Return a value, with a delay, progress reports or a failure as requested."""

import os
import sys
import time
from typing import Any

from ade_engine.channel import Channel


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Print, wait, report the steps, then return the value or fail."""
    if inputs["print"]:
        sys.stdout.write(inputs["print"] + "\n")
    parts = max(inputs["steps"], 1)
    for step in range(parts):
        time.sleep(inputs["sleep_ms"] / 1000 / parts)
        if inputs["steps"]:
            channel.progress(step + 1, parts, f"step {step + 1} of {parts}")
    if inputs["fail"] == "raise":
        raise ValueError("asked to fail")
    if inputs["fail"] == "exit":
        os._exit(3)
    if inputs["fail"] == "abort":
        os.abort()
    return inputs["value"]
