"""Run cells of Python; the result is the value of `main(**parameters)` or of the last expression.

Open matplotlib figures and a result that is a table also become files in `artifacts/`.
"""

import ast
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from ade_engine.cell_outputs import encode, keep_figures, keep_table
from ade_engine.channel import Channel

FILE = "cell.py"


def cell_inputs(
    source: str, parameters: dict[str, Any] | None = None, entrypoint: str = "main"
) -> dict[str, Any]:
    """Return the inputs of `main` for one cell without datasets and snapshots."""
    return {
        "cells": [{"file": FILE, "source": source}],
        "parameters": parameters or {},
        "entrypoint": entrypoint,
        "datasets": {},
        "snapshots": [],
        "formats": [],
    }


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Run the cells and return the value of the last one as JSON."""
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
        value = _call(entrypoint, parameters)
    formats = inputs["formats"]
    keep_figures(formats, channel)
    summary = keep_table(value, formats, channel)
    return encode(value if summary is None else summary)


class BadCall(Exception):
    """The entrypoint cannot be called with the parameters."""

    code, category = "PYTHON_EXCEPTION", "USER_CODE_ERROR"

    def __init__(self, reason: TypeError, code: types.CodeType) -> None:
        super().__init__(
            f"TypeError: {code.co_name}() cannot be called with the parameters: {reason}"
        )
        self._code = code

    def details(self) -> dict[str, Any]:
        """Return where the function is defined."""
        code = self._code
        position = {"file": code.co_filename, "line": code.co_firstlineno, "column": 1}
        return {**position, "function": code.co_name, "type": "TypeError"}


def _call(entrypoint: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """Call the entrypoint; run the coroutine that an `async` one returns."""
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
