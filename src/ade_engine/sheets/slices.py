"""Hand pieces of a buffer to polars as texts, by the Arrow C data interface.

Polars has no public call that makes a column of texts from a buffer and offsets, but it takes
anything that speaks Arrow's C data interface. That is two small structs, written here with ctypes.
The offsets of Arrow lie one behind the other, so that the gaps between the pieces are elements
too; every second element is then left out.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def texts(buffer: Bytes, starts: Positions, ends: Positions) -> pl.Series:
    """Give `buffer[starts[i]:ends[i]]` as a text for every i; pieces must follow one another.

    Raise `polars.exceptions.PolarsError` if a piece is not UTF-8.
    """
    return binaries(buffer, starts, ends).cast(pl.String)


def binaries(buffer: Bytes, starts: Positions, ends: Positions) -> pl.Series:
    """Give `buffer[starts[i]:ends[i]]` as bytes for every i; pieces must follow one another."""
    if not len(starts):
        return pl.Series(dtype=pl.Binary)
    offsets = np.empty(2 * len(starts), np.int64)
    offsets[0::2] = starts
    offsets[1::2] = ends
    if offsets[0] < 0 or offsets[-1] > len(buffer) or (np.diff(offsets) < 0).any():
        raise ValueError("the pieces do not follow one another inside the buffer")
    return pl.Series(_Offsets(offsets, buffer)).gather_every(2)


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


_kept: dict[int, tuple[Any, ...]] = {}  # what polars still points into, by private_data
_numbers = itertools.count(1)
_LARGE_BINARY = b"Z"


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


class _Offsets:
    """A large binary array: element i lies between offsets i and i + 1 of the buffer."""

    def __init__(self, offsets: Positions, buffer: Bytes) -> None:
        self._offsets = offsets
        self._buffer = np.ascontiguousarray(buffer)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        """Give the two structs as capsules; the array lives until polars releases it."""
        number = next(_numbers)
        self._schema = _Schema(
            format=_LARGE_BINARY,
            name=b"",
            release=ctypes.cast(_schema_released, ctypes.c_void_p),
        )
        pointers = (ctypes.c_void_p * 3)(None, self._offsets.ctypes.data, self._buffer.ctypes.data)
        self._array = _Array(
            length=len(self._offsets) - 1,
            n_buffers=3,
            buffers=ctypes.cast(pointers, ctypes.c_void_p),
            release=ctypes.cast(_array_released, ctypes.c_void_p),
            private_data=number,
        )
        _kept[number] = (self._offsets, self._buffer, pointers)
        return (
            _capsule(ctypes.addressof(self._schema), b"arrow_schema", None),
            _capsule(ctypes.addressof(self._array), b"arrow_array", None),
        )
