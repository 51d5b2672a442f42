"""Turn the value of a cell into JSON."""

import math
import re
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, is_dataclass
from typing import Any

from ade_engine.channel import ResultNotJson

LIBRARIES = ("numpy", "polars", "pandas")
MISSING = ("NaTType", "NAType")
REPR_CHARS_MAX = 1_000
DEPTH_MAX = 100
# An address differs from run to run, and tells nothing.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,16}\b")

Convert = Callable[[Any], Any]


def encode(value: Any, special: Convert | None = None, depth: int = 0) -> Any:
    """Turn a value into JSON; one that has no equivalent there becomes its bounded `repr`.

    `special` may return another value in place of one that is not plain, or None.
    """
    if value is None or isinstance(value, str | bool | int):
        return _builtin(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > DEPTH_MAX:
        raise ResultNotJson("it refers to itself, or is nested too deeply")
    if special is not None and (replaced := special(value)) is not None:
        return encode(replaced, None, depth + 1)
    if isinstance(value, Mapping):
        return {_key(key): encode(item, special, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, special, depth + 1) for item in value]
    if isinstance(value, Set):
        return [encode(item, special, depth + 1) for item in _ordered(value)]
    if type(value).__name__ in MISSING and library_of(value) == "pandas":
        return None
    for convert in (_dataclass, _array, _date):
        if (converted := convert(value)) is not None:
            return encode(converted, special, depth + 1)
    return {"repr": text_of(value)}


def text_of(value: Any) -> str:
    """Return the bounded `repr` of a value, without memory addresses."""
    try:
        text = repr(value)
    except Exception as error:
        return f"[its repr failed: {type(error).__name__}]"
    return _ADDRESS.sub("", text[: 2 * REPR_CHARS_MAX])[:REPR_CHARS_MAX]


def library_of(value: Any) -> str | None:
    """Return which of the libraries of arrays and tables defines the type of a value."""
    name = type(value).__module__.partition(".")[0]
    return name if name in LIBRARIES else None


def is_instance(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is of a library's class, if the library is imported at all."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _key(key: Any) -> str:
    return str.__str__(key) if isinstance(key, str) else _ADDRESS.sub("", str(key))


def _ordered(values: Set[Any]) -> list[Any]:
    """Sort a set where that is possible, so that the result does not depend on hashes."""
    try:
        return sorted(values)
    except Exception:
        return list(values)


def _builtin(value: Any) -> Any:
    """Convert an instance of a subclass to the builtin type, so that its methods are not called."""
    for kind in (bool, int, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def _dataclass(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else None


def _array(value: Any) -> Any:
    """Return the builtin values of an array, a series or a scalar of a library."""
    if library_of(value) is None:
        return None
    for name in ("tolist", "to_list", "item"):
        method: Callable[[], Any] | None = getattr(value, name, None)
        if callable(method):
            return method()
    return str(value) if type(value).__name__ in {"Period", "Interval"} else None


def _date(value: Any) -> Any:
    method = getattr(value, "isoformat", None)
    return str(method()) if callable(method) and not isinstance(value, type) else None
