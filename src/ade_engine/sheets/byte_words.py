"""Process eight bytes at a time as one 64-bit word (SWAR), instead of looping over characters."""

from __future__ import annotations

import numpy as np

from ade_engine.sheets.arrays import BoolArray, ByteArray, IntArray, WordArray

PADDING = b"\0" * 32  # so that a word can begin at the last byte, too
MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)  # keeps `size` bytes

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_U = np.uint64


def words_from_each_byte(padded: bytes) -> WordArray:
    """Return the little-endian word that begins at each byte; the buffer must end in padding."""
    return np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,))


def word(text: bytes) -> np.uint64:
    """Return at most eight bytes as a word."""
    return np.uint64(int.from_bytes(text, "little"))


def index_of(words: WordArray, byte: bytes) -> ByteArray:
    """Return the first index of a byte in each word, or 8 if the word does not hold it."""
    differing = words ^ (_ONES * _U(byte[0]))
    found = (differing - _ONES) & ~differing & _HIGHS
    lowest = found & (~found + _U(1))
    return np.where(found == 0, np.uint8(8), np.bitwise_count(lowest - _U(1)) >> 3)


def whole_numbers(words: WordArray, sizes: IntArray) -> tuple[IntArray, BoolArray]:
    """Parse the first `sizes` bytes (0 to 8) as decimal digits; also mark where they are digits."""
    shift = ((8 - sizes) << 3).astype(np.uint64)
    # A shift by all 64 bits has no effect on some processors, hence the cases for 0 and 8.
    digits = np.where(sizes == 0, _ZEROS, (words << shift) | (_ZEROS >> (_U(64) - shift)))
    digits = np.where(sizes == 8, words, digits)
    valid = ((digits & _HIGH_HALVES) == _ZEROS) & (((digits + _SIXES) & _HIGH_HALVES) == _ZEROS)
    digits = digits & _U(0x0F0F0F0F0F0F0F0F)
    digits = (digits * _U(10) + (digits >> _U(8))) & _U(0x00FF00FF00FF00FF)
    digits = (digits * _U(100) + (digits >> _U(16))) & _U(0x0000FFFF0000FFFF)
    digits = (digits * _U(10_000) + (digits >> _U(32))) & _U(0x00000000FFFFFFFF)
    return digits.astype(np.int64), valid & (sizes > 0) & (sizes <= 8)
