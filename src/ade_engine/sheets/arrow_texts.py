"""Pass slices of a buffer to polars as strings, through the Arrow C data interface.

Polars has no public call that makes a string column from a buffer and offsets into it, but it
accepts any object that implements Arrow's C data interface. The interface is two small structs,
written here with ctypes, and Arrow's view layout: sixteen bytes for each string, which hold its
length and either its bytes (if they are twelve or fewer) or its first four bytes and its offset in
the buffer. The buffer is not copied; it lives as long as the strings.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import IntArray, WordArray
from ade_engine.sheets.byte_words import MASKS, PADDING

INLINE_BYTES = 12
_HALF = np.uint64(32)


def slice_texts(padded: bytes, words: WordArray, starts: IntArray, ends: IntArray) -> pl.Series:
    """Return `padded[starts[i]:ends[i]]` as a string for every i, without copying.

    Raise `polars.exceptions.PolarsError` if a piece is not UTF-8.
    """
    if not len(starts):
        return pl.Series(dtype=pl.String)
    sizes = ends - starts
    if sizes.min() < 0 or starts.min() < 0 or ends.max() > len(padded) - len(PADDING):
        raise ValueError("a piece lies outside of the buffer")
    views = np.empty((len(starts), 2), np.uint64)
    first = words[starts]
    short = sizes <= INLINE_BYTES
    # The first four bytes are the same in both layouts; a short text ends in zeros.
    first_kept = first & MASKS[np.minimum(sizes, 8)]
    views[:, 0] = sizes.astype(np.uint64) | (first_kept << _HALF)
    second = words[starts + 8] & MASKS[np.clip(sizes - 8, 0, 8)]
    inline = (first_kept >> _HALF) | (second << _HALF)
    views[:, 1] = np.where(short, inline, starts.astype(np.uint64) << _HALF)
    return pl.Series(_Views(views, padded)).cast(pl.String)


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class _Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_kept: dict[int, tuple[Any, ...]] = {}  # memory that polars still refers to, by private_data
_numbers = itertools.count(1)
_BINARY_VIEW = b"vz"


def _release_schema(schema: Any) -> None:
    schema.contents.release = None


def _release_array(array: Any) -> None:
    _kept.pop(array.contents.private_data, None)
    array.contents.release = None


_schema_released = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))(_release_schema)
_array_released = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))(_release_array)

_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Views:
    """An array of Arrow's binary view type over one buffer."""

    def __init__(self, views: WordArray, buffer: bytes) -> None:
        self._views = views
        self._buffer = buffer

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        """Return the two structs as capsules; their memory lives until polars releases it."""
        number = next(_numbers)
        self._schema = _Schema(
            format=_BINARY_VIEW,
            name=b"",
            release=ctypes.cast(_schema_released, ctypes.c_void_p),
        )
        lengths = np.array([len(self._buffer)], np.int64)
        data = np.frombuffer(self._buffer, np.uint8)
        pointers = (ctypes.c_void_p * 4)(
            None, self._views.ctypes.data, data.ctypes.data, lengths.ctypes.data
        )
        self._array = _Array(
            length=len(self._views),
            n_buffers=4,
            buffers=ctypes.cast(pointers, ctypes.c_void_p),
            release=ctypes.cast(_array_released, ctypes.c_void_p),
            private_data=number,
        )
        _kept[number] = (self._views, data, lengths, pointers)
        return (
            _capsule(ctypes.addressof(self._schema), b"arrow_schema", None),
            _capsule(ctypes.addressof(self._array), b"arrow_array", None),
        )
