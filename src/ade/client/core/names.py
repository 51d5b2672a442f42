"""Find a configuration or a document by its name or its id."""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ade.client.core.exchange import call_json, request_of
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import Call
from ade.client.errors import AmbiguousName, NotFound

PAGE_SIZE = 200
PAGES_MAX = 50
SUGGESTIONS_MAX = 3
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_id(text: str) -> bool:
    """Tell whether a text is an id of ADE."""
    return _UUID.fullmatch(text) is not None


def segment(text: str) -> str:
    """Write an id or a slug as one part of a path; raise NotFound if it cannot be one."""
    if text.strip(".") == "":
        raise NotFound(f"There is nothing with the id {text!r}.", code="not_found", status=404)
    return quote(text, safe="")


def local_file(document: str | os.PathLike[str]) -> Path | None:
    """Return the file that a document is named by; None for the name of one on the server."""
    path = Path(document)
    if path.is_file():
        return path
    if not isinstance(document, str) or path.name != document:
        raise FileNotFoundError(f"There is no file {str(document)!r}.")
    return None


def find_id(path: str, noun: str, wanted: str, policy: RetryPolicy) -> Call[str]:
    """Return the id of what is called so; raise NotFound with the nearest names.

    Several documents of one name and one content are the same to whoever reads them: the newest
    is taken. Otherwise several things of one name raise AmbiguousName.
    """
    if is_id(wanted):
        return wanted
    named: list[Mapping[str, Any]] = []
    known: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        query: list[tuple[str, str | int]] = [("limit", PAGE_SIZE)]
        query += [("cursor", cursor)] if cursor else []
        page = yield from call_json(request_of("GET", path, query=query), policy)
        named += [one for one in page["items"] if one["name"] == wanted]
        known += [one["name"] for one in page["items"]]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    key = f"{noun}_id"
    if len({one.get("digest", one[key]) for one in named}) > 1:
        ids = ", ".join(one[key] for one in named)
        raise AmbiguousName(f"Several {noun}s are named {wanted!r}; use one of their ids: {ids}")
    if not named:
        raise NotFound(_not_found(noun, wanted, known), code="not_found", status=404)
    return str(named[0][key])


def _not_found(noun: str, wanted: str, known: list[str]) -> str:
    near = difflib.get_close_matches(wanted, dict.fromkeys(known), SUGGESTIONS_MAX)
    if near:
        return f"There is no {noun} {wanted!r}. Did you mean {' or '.join(map(repr, near))}?"
    return f"There is no {noun} {wanted!r} in this workspace."
