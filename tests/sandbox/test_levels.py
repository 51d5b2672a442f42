"""What the probe finds in each situation is what the situation allows, no more and no less."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandbox.conftest import IS_FAST
from tests.sandbox.hostile.gaps import SHUT
from tests.sandbox.modes import BY_NAME, SLOT_USERS, can_run

PROBE = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from ade.sandbox.probe import probe
report = asyncio.run(probe(int(sys.argv[2])))
found = report.found
print(json.dumps([report.level, found and found.by_root, found and found.user_base]))
"""
SOURCE = str(Path(__file__).resolve().parents[2] / "src")
NATURAL = ["root", "user", "no-sys-admin", "docker"]  # the others are weaker on purpose
CASES = [
    pytest.param(name, marks=[pytest.mark.xfail(reason=SHUT[name])] if name in SHUT else [])
    for name in NATURAL
]


@pytest.mark.skipif(IS_FAST, reason="a probe in each situation takes its time")
@pytest.mark.parametrize("mode", CASES)
def test_the_probe_finds_the_level_of_the_situation(mode: str) -> None:
    situation = BY_NAME[mode]
    if not can_run(situation):
        pytest.skip("needs root")
    program = [sys.executable, "-c", PROBE, SOURCE, str(SLOT_USERS)]
    done = subprocess.run(situation.command(program), stdout=subprocess.PIPE, cwd="/", timeout=60)
    level, by_root, user_base = json.loads(done.stdout)
    expected = situation.layers()
    assert (level, by_root, user_base) == (
        expected["level"],
        expected["by_root"],
        expected["user_base"],
    )
