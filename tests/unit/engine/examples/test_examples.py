"""The examples' own tests pass, as an author would run them."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from ade_engine.examples import FOLDER, example_names

pytestmark = pytest.mark.slow

OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "ade_engine.testing", "--import-mode=importlib")


def test_there_are_three() -> None:
    assert example_names() == ("bank_statement", "member_roster", "payroll")


def test_pytest_finds_the_fixture_by_itself() -> None:
    assert "ade_engine.testing" in {point.value for point in entry_points(group="pytest11")}


def test_their_tests_pass() -> None:
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-c", os.devnull]
    ended = subprocess.run(
        [*command, "--rootdir", str(FOLDER), str(FOLDER)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # the others take their time
    )
    assert ended.returncode == 0, ended.stdout
    assert "12 passed" in ended.stdout
