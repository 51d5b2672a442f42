"""Nothing of one job is found in the memory of the next."""

import secrets

import pytest
from tests.sandbox.conftest import Drivers
from tests.sandbox.modes import FAST

SECRETS = 20_000
# The mark comes backwards, so that a search for it does not find the spec that names it.
SEARCH = """
import ctypes
mark = kram[::-1].encode()
found = 0
with open("/proc/self/maps") as maps:
    areas = [line.split() for line in maps]
for area in areas:
    if "r" not in area[1] or area[-1] in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
        continue
    start, end = (int(number, 16) for number in area[0].split("-"))
    found += ctypes.string_at(start, end - start).count(mark + b"-")
found
"""


@pytest.mark.parametrize("mode", FAST)
def test_no_secret_of_one_job_is_in_the_memory_of_the_next(mode: str, drivers: Drivers) -> None:
    mark = f"remnant{secrets.token_hex(8)}"
    payload = [f"{mark}-{number:06}-{secrets.token_hex(8)}" for number in range(SECRETS)]
    given = {"kram": mark[::-1], "payload": payload}
    limits = {"memory_mb": 512, "cpu_ms": 10_000, "timeout_ms": 20_000}
    driver = drivers.of(mode)
    first = driver.run(source=SEARCH, parameters=given, limits=limits)
    assert first["verdict"] == "succeeded", first
    assert first["outputs"]["result_json"] >= SECRETS, "the search finds what is there"
    for _ in range(3):  # the first of these may have been forked before the secrets were given
        report = driver.run(source=SEARCH, parameters={"kram": mark[::-1]}, limits=limits)
        assert report["verdict"] == "succeeded", report
        assert report["outputs"]["result_json"] == 0


MARKED = """
import fcntl, os
before = [fcntl.fcntl(number, fcntl.F_GETFL) for number in range(4)]
for number in range(4):
    fcntl.fcntl(number, fcntl.F_SETFL, before[number] ^ os.O_APPEND)
before
"""


@pytest.mark.parametrize("mode", FAST)
def test_no_descriptor_of_one_job_is_marked_by_another(mode: str, drivers: Drivers) -> None:
    """What two jobs hold open in common has flags that one can set and the other can read."""
    driver = drivers.of(mode)
    seen = [driver.run(source=MARKED)["outputs"]["result_json"] for _ in range(3)]
    assert seen[1:] == [seen[0]] * 2
