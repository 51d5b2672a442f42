"""Run cells of Python as `python cell.py` runs a script.

The result is the value of `main(**parameters)`, if the cell defines `main` and does not call it
itself, or else the value of the last expression. What the cell shows and the files that it writes
are kept as artifacts (`ade_engine.cell_outputs`).
"""

import builtins
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ade_engine import interpreter_exit
from ade_engine.cell_outputs import Outputs
from ade_engine.cell_outputs.figures import BACKEND
from ade_engine.cell_outputs.working_folder import WorkingFolder
from ade_engine.cell_source import CellSource, runs_as_script
from ade_engine.channel import ArtifactLimits, Channel

FILE = "cell.py"
DEFAULT_ENTRYPOINT = "main"
NAMES_SHOWN = 5


def cell_inputs(
    source: str,
    parameters: dict[str, Any] | None = None,
    entrypoint: str | None = DEFAULT_ENTRYPOINT,
) -> dict[str, Any]:
    """Return the inputs of `main` for one cell without datasets and snapshots.

    Without an entrypoint only the cell itself is run.
    """
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
    os.environ.setdefault("MPLBACKEND", BACKEND)
    outputs = Outputs(inputs["formats"], channel)
    run = _CellRun(inputs)
    if channel.limits is None:
        return outputs.result(run.value())
    _look_like_a_script(inputs)
    folder = WorkingFolder()
    builtins.display = outputs.display  # type: ignore[attr-defined]
    try:
        with interpreter_exit.FirstProcessOnly():
            value = run.value()
            interpreter_exit.wait_for_threads()
        return outputs.result(value)
    except BaseException as error:
        if isinstance(error, SystemExit) and interpreter_exit.exit_status(error) == 0:
            interpreter_exit.wait_for_threads()
            return outputs.result(None)
        if sys.excepthook is not sys.__excepthook__:
            interpreter_exit.call_excepthook(error)
        raise
    finally:
        interpreter_exit.run_exit_handlers()
        try:
            folder.keep_new_files(channel.limits, channel)
        except OSError as error:
            channel.warning(f"The files in the working folder were not kept: {error.strerror}.")


def rehearse_end(channel: Channel) -> None:
    """Do what happens at the end of a cell and changes nothing, for a zygote that warms up."""
    interpreter_exit.wait_for_threads()
    WorkingFolder().keep_new_files(ArtifactLimits(0, 0), channel)


def _look_like_a_script(inputs: dict[str, Any]) -> None:
    """Write the cells into the folder of the job, and set what `python cell.py` would set."""
    for cell in _all_cells(inputs):
        with suppress(OSError):  # the folder may be full
            _write(cell["file"], cell["source"].encode(errors="surrogatepass"))
    sys.argv = [inputs["cells"][-1]["file"]]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path.insert(0, os.getcwd())


def _write(name: str, content: bytes) -> None:
    """Write a file without a stream, whose creation takes longer than the rest."""
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def _all_cells(inputs: dict[str, Any]) -> list[dict[str, str]]:
    pinned = [cell for snapshot in inputs["snapshots"] for cell in snapshot["cells"]]
    return [*pinned, *inputs["cells"]]


class _CellRun:
    """Run the cells of one job in one namespace, that of a new `__main__`."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._inputs = inputs
        self._parameters: dict[str, Any] = inputs["parameters"]
        self._folder = os.getcwd()
        self._runner: Any = None
        module = types.ModuleType("__main__")
        self._names = module.__dict__
        self._names.update(self._parameters)
        self._names.update(
            parameters=self._parameters, datasets=inputs["datasets"], __builtins__=__builtins__
        )
        sys.modules["__main__"] = module

    def value(self) -> Any:
        """Run all cells; return what the entrypoint returns, or the value of the last cell."""
        try:
            for snapshot in self._inputs["snapshots"]:
                for cell in snapshot["cells"]:
                    self._execute(CellSource(cell["file"], cell["source"]))
            value, sources = None, []
            for cell in self._inputs["cells"]:
                source = CellSource(cell["file"], cell["source"])
                value = self._execute(source)
                sources.append(source)
            entrypoint = self._entrypoint(sources)
            return value if entrypoint is None else self._call(entrypoint)
        finally:
            if self._runner is not None:
                self._runner.close()

    def _execute(self, cell: CellSource) -> Any:
        """Run the statements; return the value of the last one if it is an expression."""
        self._names["__file__"] = os.path.join(self._folder, cell.file)
        lines = cell.text.splitlines(keepends=True)
        linecache.cache[cell.file] = (len(cell.text), None, lines, cell.file)
        codes = cell.compile()
        if any(code.co_flags & inspect.CO_COROUTINE for code in codes):
            return self._await(self._execute_in_loop(codes))
        value = None
        for code in codes:
            value = eval(code, self._names)
        return value

    async def _execute_in_loop(self, codes: list[types.CodeType]) -> Any:
        """Run a cell that awaits: all of it runs while the event loop runs."""
        value = None
        for code in codes:
            value = eval(code, self._names)
            if code.co_flags & inspect.CO_COROUTINE:
                value = await value
        return value

    def _await(self, coroutine: Any) -> Any:
        """Run a coroutine; all of a job run in one event loop, so tasks go on from cell to cell."""
        import asyncio

        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)

    def _entrypoint(self, sources: list[CellSource]) -> Callable[..., Any] | None:
        """Return the function to call; None if the cells are a script."""
        name = self._inputs["entrypoint"]
        if name is None:
            return None
        found = self._names.get(name)
        if name == DEFAULT_ENTRYPOINT:
            is_called = callable(found) and not runs_as_script(sources, name, by_default=True)
            return found if is_called else None
        if not callable(found):
            raise NoEntrypoint(name, self._names)
        return None if runs_as_script(sources, name, by_default=False) else found

    def _call(self, entrypoint: Callable[..., Any]) -> Any:
        """Call the entrypoint; run the coroutine that an `async` one returns."""
        if isinstance(entrypoint, types.FunctionType):
            try:
                inspect.signature(entrypoint).bind(**self._parameters)
            except TypeError as error:
                raise BadCall(error, entrypoint.__code__) from None
        value = entrypoint(**self._parameters)
        return self._await(value) if inspect.iscoroutine(value) else value


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


class NoEntrypoint(Exception):
    """The request names an entrypoint that the cell does not define."""

    code, category = "ENTRYPOINT_NOT_FOUND", "USER_CODE_ERROR"

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        defined = [
            other
            for other, value in names.items()
            if isinstance(value, types.FunctionType) and value.__module__ == "__main__"
        ]
        shown = ", ".join(defined[:NAMES_SHOWN]) or "no function"
        super().__init__(
            f"The cell does not define a function {name!r}, which the request names as its"
            f" entrypoint; it defines {shown}."
        )
        self._name = name

    def details(self) -> dict[str, Any]:
        """Return the name that was looked for."""
        return {"entrypoint": self._name}
