"""Parse the attributes of cells, once for each distinct spelling.

A sheet has millions of cells but few distinct attribute tails such as ` s="3" t="s"`. Each tail is
hashed and looked up; only a tail that is not in the table yet is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from threading import Lock

import numpy as np

from ade_engine.sheets.arrays import BoolArray, ByteArray, IntArray, WordArray
from ade_engine.sheets.byte_words import MASKS
from ade_engine.sheets.fast_path_errors import FastPathUnsupported

TAIL_BYTES_MAX = 24
SLOTS = 4096

_MULTIPLIERS = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
)
_SLOT_SHIFT = np.uint64(52)
_FREE = np.uint64(0)
_TAIL = re.compile(rb'((?: [A-Za-z:]+="[^"<&]*")*) ?(/?)')
_ATTRIBUTE = re.compile(rb' ([A-Za-z:]+)="([^"]*)"')


class CellType(IntEnum):
    """The type of a cell's value, from its attribute `t`."""

    NUMBER = 0
    SHARED = 1
    BOOL = 2
    TEXT = 3
    ERROR = 4
    INLINE = 5
    DATE = 6


TYPES = {
    "n": CellType.NUMBER,
    "s": CellType.SHARED,
    "b": CellType.BOOL,
    "str": CellType.TEXT,
    "e": CellType.ERROR,
    "inlineStr": CellType.INLINE,
    "d": CellType.DATE,
}


class AttributeTails:
    """A hash table of attribute tails: type, date style, and whether the element is empty."""

    def __init__(self, date_styles: BoolArray, style_marks: IntArray) -> None:
        self._date_styles = date_styles
        self._style_marks = style_marks
        self._keys = np.zeros(SLOTS, np.uint64)
        self._codes = np.zeros(SLOTS, np.int64)
        self._learning = Lock()  # several threads read pieces of one sheet
        self._crowded: list[tuple[np.uint64, int]] = []  # tails whose slot is taken by another tail
        self.types = np.zeros(0, np.uint8)
        self.dates = np.zeros(0, np.bool_)
        self.marks = np.zeros(0, np.int64)
        self.closed = np.zeros(0, np.bool_)

    def codes(
        self, buffer: ByteArray, words: WordArray, starts: IntArray, ends: IntArray
    ) -> IntArray:
        """Return the index of each tail in `types`, `dates`, `marks` and `closed`."""
        sizes = ends - starts
        longest = int(sizes.max(initial=0))
        if longest > TAIL_BYTES_MAX or int(sizes.min(initial=0)) < 0:
            raise FastPathUnsupported
        keys = (words[starts] & MASKS[np.minimum(sizes, 8)]) * _MULTIPLIERS[0] + np.uint64(1)
        for part in (1, 2):
            if longest > 8 * part:
                long = np.flatnonzero(sizes > 8 * part)
                more = words[starts[long] + 8 * part] & MASKS[np.minimum(sizes[long] - 8 * part, 8)]
                keys[long] += more * _MULTIPLIERS[part]
        slots = (keys >> _SLOT_SHIFT).astype(np.intp)
        unknown = self._keys[slots] != keys
        codes: IntArray = self._codes[slots]
        if unknown.any():
            with self._learning:
                self._resolve(codes, unknown, keys, lambda at: bytes(buffer[starts[at] : ends[at]]))
        return codes

    def _resolve(
        self,
        codes: IntArray,
        unknown: BoolArray,
        keys: WordArray,
        tail_at: Callable[[int], bytes],
    ) -> None:
        """Resolve the tails whose slots do not hold them, parsing those that are new."""
        for key, code in self._crowded:
            same = keys == key
            codes[same] = code
            unknown &= ~same
        while unknown.any():
            at = int(np.argmax(unknown))
            same = keys == keys[at]
            codes[same] = self._learn(keys[at], tail_at(at))
            unknown &= ~same

    def _learn(self, key: np.uint64, tail: bytes) -> int:
        found = _TAIL.fullmatch(tail)
        if found is None:
            raise FastPathUnsupported
        attributes = dict(_ATTRIBUTE.findall(found[1]))
        kind = TYPES.get(attributes.get(b"t", b"n").decode())
        style = attributes.get(b"s", b"0")
        if kind is None or not style.isdigit() or b"r" in attributes:
            raise FastPathUnsupported
        known = int(style) < len(self._date_styles)
        dated = known and bool(self._date_styles[int(style)])
        mark = int(self._style_marks[int(style)]) if known else 0
        code = len(self.types)
        self.types = np.append(self.types, np.uint8(kind))
        self.dates = np.append(self.dates, dated)
        self.marks = np.append(self.marks, mark)
        self.closed = np.append(self.closed, bool(found[2]))
        slot = int(key >> _SLOT_SHIFT)
        if self._keys[slot] == _FREE:
            self._codes[slot] = code
            self._keys[slot] = key  # last: a thread that sees the key may read the code
        else:
            self._crowded.append((key, code))
        return code
