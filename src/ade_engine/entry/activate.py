"""Activate a config package: load it and call its `on_activate` hooks, before any run uses it."""

from __future__ import annotations

import importlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.package.config_package import load_package
from ade_engine.package.function_arguments import Context

NOTE_CHARACTERS_MAX = 10_000
MODULES_TRIED_MAX = 10
REASON_CHARACTERS_MAX = 300


class PackageNotImportable(Exception):
    """A required package was installed, and cannot be imported."""

    code, category = "PACKAGE_NOT_IMPORTABLE", "DEPENDENCY_ERROR"

    def __init__(self, package: str, module: str, raised: BaseException) -> None:
        reason = " ".join(str(raised).split())[:REASON_CHARACTERS_MAX]
        super().__init__(
            f"requirements.txt names {package}, which was installed and cannot be imported:"
            f" import {module} raises {type(raised).__name__}: {reason}"
        )
        self._details = {"package": package, "module": module, "exception": type(raised).__name__}

    def details(self) -> dict[str, Any]:
        """Return which package and module it was."""
        return self._details


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Activate the package in the folder `config`; return its fields and its hooks' results."""
    for name in inputs.get("required", []):
        try_import(name)
    with load_package(Path(inputs["config"])) as package:
        ctx = Context(settings=package.settings.author)
        notes = package.call_hooks("on_activate", {"ctx": ctx})
        return {
            "name": package.settings.name,
            "digest": package.sources.digest,
            "fields": [rules.name for rules in package.fields],
            "warnings": [problem.as_json() for problem in package.warnings],
            "annotations": [_jsonable(note) for note in notes if note is not None],
        }


def try_import(name: str) -> None:
    """Import the modules of an installed package; raise if none of them can be imported."""
    modules = _modules_of(name)
    failures: list[tuple[str, BaseException]] = []
    for module in modules[:MODULES_TRIED_MAX]:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            failures.append((module, error))
    if failures and len(failures) == len(modules[:MODULES_TRIED_MAX]):
        module, raised = failures[0]
        raise PackageNotImportable(name, module, raised)


def _modules_of(name: str) -> list[str]:
    """List the top-level modules of an installed package; none if it is not installed."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # a requirement of another platform
        return []
    found = {
        file.parts[0].partition(".")[0]
        for file in files
        if file.suffix in {".py", ".so"} and ".." not in file.parts
    }
    return sorted(module for module in found if module.isidentifier() and module != "bin")


def _jsonable(note: Any) -> Any:
    """Return a hook's result if it is JSON and not too large, else say why it was dropped."""
    try:
        text = json.dumps(note, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"dropped": "it is not JSON"}
    return note if len(text) <= NOTE_CHARACTERS_MAX else {"dropped": "it is too large"}
