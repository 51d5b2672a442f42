"""A wheel that takes over its zygote reaches neither the worker nor another tenant."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.conftest import IS_FAST
from tests.sandbox.modes import BY_NAME, FAST

RUN = Path(__file__).parent / "run.py"
TRIED = list(FAST) if IS_FAST else list(BY_NAME)
EXPLOITS = ("kill_server", "kill_any", "take_folder")
# Each of these is tried where nothing but what was made for it stops it.
VARIATIONS = [
    ("root", "kill_server_by_message"),
    ("user", "kill_group"),
    ("user-landlock", "limit_server"),
    ("root-landlock", "move_server"),
    ("root-landlock", "plant_link"),
]
CASES = [(mode, attack) for attack in EXPLOITS for mode in TRIED] + VARIATIONS
REFUSED = {"INTERNAL_ERROR/ZYGOTE_LOST", "INTERNAL_ERROR/SANDBOX_SETUP", "INTERNAL_ERROR/STOPPED"}
SECONDS_MAX = 120


def _attacked(mode: str, attack: str) -> dict[str, Any]:
    asked = json.dumps({"layers": BY_NAME[mode].layers(), "attack": attack})
    # A session of its own: an attack on a group of processes must not reach the tests.
    done = subprocess.run(
        BY_NAME[mode].command([sys.executable, "-B", str(RUN), asked]),
        stdout=subprocess.PIPE,
        cwd="/",
        timeout=SECONDS_MAX,
        start_new_session=True,
    )
    assert done.returncode == 0, f"the worker ended with {done.returncode}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # behind what was logged
    return found


@pytest.mark.parametrize(("mode", "attack"), CASES)
def test_a_hostile_wheel_reaches_nothing_outside(mode: str, attack: str) -> None:
    found = _attacked(mode, attack)
    assert found["victim_lives"], "a process of somebody else was killed"
    assert found["another_lives"], "the job of another tenant was ended"
    assert "secret" not in found["collected"], "a file of another tenant was collected"
    assert found["unchanged"], "a folder of another, or the worker itself, was changed"
    assert found["after"] == ["succeeded", {"own": "own"}]
    # Where the attack fails already in the zygote, its job may run as any other.
    ran = ("succeeded", {"own": "own"})
    assert found["outcome"] in REFUSED or (found["outcome"], found["collected"]) == ran
