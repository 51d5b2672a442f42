"""What tests of `ade scale` share: the file of a pilot's settings, and the status of a scaler."""

import json
from pathlib import Path
from typing import Any

from tests.processes import eventually
from tests.system.server import Start


def pilot_file(folder: Path, start: Start, **settings: object) -> Path:
    """Write the settings of pilots, for their owner only."""
    env = start.environment(**settings)
    file = folder / "pilot.env"
    file.touch(0o600)
    ours = (f"{key}={value}" for key, value in env.items() if key.startswith("ADE_"))
    file.write_text("\n".join(ours) + "\n")
    return file


def scaler_status(start: Start, seconds: float) -> dict[str, Any]:
    """Return what `ade scale status` says of the only scaler."""
    printed = start.command("scale", "status", "--json")
    assert printed.ended(seconds) == 0
    (scaler,) = json.loads(printed.output[printed.output.index("{") :])["scalers"]
    return dict(scaler)


def ended_blocks(start: Start, seconds: float) -> list[dict[str, Any]]:
    """Wait until all blocks of the only scaler have ended, and return them."""

    def look() -> list[dict[str, Any]] | None:
        blocks = scaler_status(start, seconds)["blocks"]
        return blocks if {one["state"] for one in blocks} == {"ended"} else None

    found = eventually(look, seconds)
    assert found is not None
    return found
