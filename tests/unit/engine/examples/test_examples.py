"""The examples' own tests pass, as an author would run them."""

import os
import subprocess
import sys

from ade_engine.examples import FOLDER, example_names

OPTIONS = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib")


def test_there_are_three() -> None:
    assert example_names() == ("bank_statement", "member_roster", "payroll")


def test_their_tests_pass() -> None:
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-c", os.devnull]
    ended = subprocess.run(
        [*command, "--rootdir", str(FOLDER), str(FOLDER)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout
    assert "12 passed" in ended.stdout
