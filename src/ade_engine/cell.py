"""Run a cell of Python: its value is that of `main(**parameters)`, or of its last expression."""

import ast
import linecache
import math
import sys
import types
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, is_dataclass
from typing import Any

from ade_engine.channel import Channel, ResultNotJson

FILE = "cell.py"
REPR_CHARS_MAX = 1_000
DEPTH_MAX = 100


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Run the cell and return its value in words of JSON."""
    source, parameters = inputs["source"], inputs["parameters"]
    module = types.ModuleType("__main__")
    module.__dict__.update(parameters)
    module.__dict__.update(parameters=parameters, __file__=FILE, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    value = _execute(source, module.__dict__)
    entrypoint = module.__dict__.get(inputs["entrypoint"])
    if callable(entrypoint):
        value = entrypoint(**parameters)
    return encode(value)


def _execute(source: str, namespace: dict[str, Any]) -> Any:
    """Run the statements; return the value of the last one if it is an expression."""
    tree = ast.parse(source, FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, FILE, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), FILE, "eval"), namespace)
    return None


def encode(value: Any, depth: int = 0) -> Any:
    """Turn a value into JSON: what has no place there becomes its bounded `repr`."""
    if value is None or isinstance(value, str | bool | int):
        return _plain(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > DEPTH_MAX:
        raise ResultNotJson("it refers to itself, or is nested too deeply")
    if isinstance(value, Mapping):
        return {str(key): encode(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [encode(item, depth + 1) for item in value]
    for convert in (_dataclass, _array, _date):
        if (converted := convert(value)) is not None:
            return encode(converted, depth + 1)
    return {"repr": repr(value)[:REPR_CHARS_MAX]}


def _plain(value: Any) -> Any:
    """Leave subclasses behind: their methods are not JSON's business."""
    for kind in (bool, int, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def _dataclass(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else None


def _array(value: Any) -> Any:
    """Return the plain values of what numpy, polars or pandas made."""
    if not type(value).__module__.startswith(("numpy", "polars", "pandas")):
        return None
    for name in ("tolist", "to_list", "to_dicts", "item"):
        method: Callable[[], Any] | None = getattr(value, name, None)
        if callable(method):
            return method()
    return None


def _date(value: Any) -> Any:
    method = getattr(value, "isoformat", None)
    return str(method()) if callable(method) and not isinstance(value, type) else None
