"""Find the tags in a piece of XML."""

from __future__ import annotations

import numpy as np

from ade_engine.sheets.arrays import ByteArray, IntArray
from ade_engine.sheets.fast_path import FastPathUnsupported


def find_tags(buffer: ByteArray) -> tuple[IntArray, IntArray]:
    """Find where each tag begins and ends."""
    angles = np.flatnonzero((buffer & 0xFD) == ord("<"))  # < and > differ by the bit left out
    marks = buffer[angles]
    if not len(angles) % 2 and (marks[0::2] == ord("<")).all() and (marks[1::2] == ord(">")).all():
        return angles[0::2], angles[1::2]
    starts = np.flatnonzero(marks == ord("<"))  # a text may hold > as it is
    if not len(starts) or starts[-1] + 1 >= len(marks) or (marks[starts + 1] != ord(">")).any():
        raise FastPathUnsupported
    return angles[starts], angles[starts + 1]
