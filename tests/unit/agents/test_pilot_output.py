"""Files of pilots: old ones of ended blocks go, everything else stays."""

import os
from pathlib import Path

from ade.agents.pilot_output import remove_old_output

KEPT_SECONDS = 1000.0


def test_only_old_files_of_ended_blocks_are_removed(tmp_path: Path) -> None:
    old = ["ade-a-0123456789.log", "ade-a-0123456789.17.submit", "parsl.ade-a-0123456789.17.submit"]
    stay = [
        "ade-a-aaaaaaaaaa.log",  # it lives
        "ade-a-blocks.json",
        "ade-b-0123456789.log",
        "ade-ab-0123456789.log",
        "notes.txt",
    ]
    for name in (*old, *stay, "ade-a-bbbbbbbbbb.log"):
        (tmp_path / name).touch()
    for name in (*old, *stay):
        os.utime(tmp_path / name, (1, 1))
    assert remove_old_output(tmp_path, "ade-a-", {"ade-a-aaaaaaaaaa"}, KEPT_SECONDS) == len(old)
    assert {file.name for file in tmp_path.iterdir()} == {*stay, "ade-a-bbbbbbbbbb.log"}
    assert remove_old_output(tmp_path, "ade-a-", set(), KEPT_SECONDS) == 1
