"""Activate a config package: load it and call its `on_activate` hooks, before any run uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.package.config_package import load_package
from ade_engine.package.function_arguments import Context

NOTE_CHARACTERS_MAX = 10_000


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Activate the package in the folder `config`; return its fields and its hooks' results."""
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


def _jsonable(note: Any) -> Any:
    """Return a hook's result if it is JSON and not too large, else say why it was dropped."""
    try:
        text = json.dumps(note, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"dropped": "it is not JSON"}
    return note if len(text) <= NOTE_CHARACTERS_MAX else {"dropped": "it is too large"}
