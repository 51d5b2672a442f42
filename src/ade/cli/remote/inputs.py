"""Read the inputs of jobs and cells from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

STDIN = Path("-")


def named_values(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """Read `name=value`: JSON where the value is JSON, else a text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
        found[name] = _value(text)
    return found


def json_object(file: Path, option: str) -> dict[str, Any]:
    """Read a JSON object from a file, or from stdin for `-`."""
    text = text_of(file)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}", param_hint=option) from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{file} is not a JSON object", param_hint=option)
    return found


def text_of(file: Path) -> str:
    """Read a text file, or stdin for `-`."""
    try:
        return sys.stdin.read() if file == STDIN else file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8 text") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
