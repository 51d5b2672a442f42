"""Without a sandbox the same snippets do their harm; else they would test nothing."""

import os
import platform

import pytest
from tests.sandbox.conftest import IS_FAST, Drivers
from tests.sandbox.hostile.catalogue import ALL, BY_NAME
from tests.sandbox.hostile.snippet import HARM

TRIED = [s.name for s in ALL if not s.control and s.machine in {"", platform.machine()}]


@pytest.mark.skipif(IS_FAST, reason="each control starts an interpreter")
@pytest.mark.skipif(os.geteuid() != 0, reason="what needs privileges harms only as root")
@pytest.mark.parametrize("name", TRIED)
def test_does_harm_without_a_sandbox(name: str, drivers: Drivers) -> None:
    report = drivers.of("bare").run(**BY_NAME[name].asked())
    assert report["value"] == HARM or report["traces"], report


def test_every_snippet_without_a_control_says_why() -> None:
    assert all(len(s.control) > 10 for s in ALL if s.control)


def test_the_catalogue_is_large() -> None:
    assert len(ALL) >= 70
    assert len(TRIED) >= 60
