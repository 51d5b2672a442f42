"""Run cells of Python: the value is that of `main(**parameters)`, or of the last expression.

What the code leaves besides its value becomes files in `artifacts/`: figures of matplotlib that are
still open, and the value itself if it is a table.
"""

import ast
import inspect
import linecache
import math
import os
import sys
import types
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, is_dataclass
from typing import Any

from ade_engine import cell_outputs
from ade_engine.channel import Channel, ResultNotJson

FILE = "cell.py"
REPR_CHARS_MAX = 1_000
DEPTH_MAX = 100


def asked(source: str, parameters: dict[str, Any] | None = None, entrypoint: str = "main") -> Any:
    """Return what `main` is called with for one plain cell."""
    return {
        "cells": [{"file": FILE, "source": source}],
        "parameters": parameters or {},
        "entrypoint": entrypoint,
        "datasets": {},
        "snapshots": [],
        "formats": [],
    }


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Run the cells and return the value of the last in words of JSON."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    parameters = inputs["parameters"]
    module = types.ModuleType("__main__")
    names = module.__dict__
    names.update(parameters)
    names.update(parameters=parameters, datasets=inputs["datasets"], __builtins__=__builtins__)
    sys.modules["__main__"] = module
    for snapshot in inputs["snapshots"]:
        for cell in snapshot["cells"]:
            _execute(cell, names)
    value = None
    for cell in inputs["cells"]:
        value = _execute(cell, names)
    entrypoint = names.get(inputs["entrypoint"])
    if callable(entrypoint):
        value = _called(entrypoint, parameters)
    formats = inputs["formats"]
    cell_outputs.keep_figures(formats, channel)
    table = cell_outputs.keep_table(value, formats, channel)
    return encode(value if table is None else table)


class BadCall(Exception):
    """The entrypoint cannot be called with the parameters."""

    code, category = "PYTHON_EXCEPTION", "USER_CODE_ERROR"

    def __init__(self, reason: TypeError, code: types.CodeType) -> None:
        super().__init__(
            f"TypeError: {code.co_name}() cannot be called with the parameters: {reason}"
        )
        self._code = code

    def details(self) -> dict[str, Any]:
        """Name the place where the function is defined."""
        code = self._code
        place = {"file": code.co_filename, "line": code.co_firstlineno, "column": 1}
        return {**place, "function": code.co_name, "type": "TypeError"}


def _called(entrypoint: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """Call the entrypoint, and wait for its value if that takes waiting."""
    if isinstance(entrypoint, types.FunctionType):
        try:
            inspect.signature(entrypoint).bind(**parameters)
        except TypeError as error:
            raise BadCall(error, entrypoint.__code__) from None
    value = entrypoint(**parameters)
    if inspect.iscoroutine(value):
        import asyncio

        return asyncio.run(value)
    return value


def _execute(cell: dict[str, str], namespace: dict[str, Any]) -> Any:
    """Run the statements; return the value of the last one if it is an expression."""
    file, source = cell["file"], cell["source"]
    namespace["__file__"] = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), namespace)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), file, "eval"), namespace)
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
    if cell_outputs.library_of(value) is None:
        return None
    if cell_outputs.is_table(value):
        return value.to_dicts() if hasattr(value, "to_dicts") else value.to_dict("records")
    for name in ("tolist", "to_list", "item"):
        method: Callable[[], Any] | None = getattr(value, name, None)
        if callable(method):
            return method()
    return None


def _date(value: Any) -> Any:
    method = getattr(value, "isoformat", None)
    return str(method()) if callable(method) and not isinstance(value, type) else None
