"""Undo the escapes of XML and Excel: `&amp;`, `&#10;`, `_x000D_`, line endings."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

_NAMED = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(lt|gt|quot|apos|amp));")
_EXCEL = re.compile(r"_x([0-9A-Fa-f]{4})_")
_SURROGATE = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def needs_unescape(xml: bytes) -> bool:
    """Return whether a piece of XML may hold escapes, by a fast check."""
    return b"&" in xml or b"\r" in xml or (b"_" in xml and b"_x" in xml)


def unescape(texts: pl.Series) -> pl.Series:
    """Return texts of XML with their escapes undone."""
    texts = texts.str.replace_all("\r\n", "\n", literal=True).str.replace_all(
        "\r", "\n", literal=True
    )
    numbered = texts.str.contains("&#", literal=True)
    named = texts.str.replace_many(list(_NAMED), list(_NAMED.values()))
    if numbered.any():
        named = named.scatter(numbered.arg_true(), _each(texts.filter(numbered), unescape_entities))
    return decode_escapes(named)


def decode_escapes(texts: pl.Series) -> pl.Series:
    """Undo Excel's escapes for characters that XML cannot hold."""
    escaped = texts.str.contains(r"_x[0-9A-Fa-f]{4}_")
    if not escaped.any():
        return texts
    return texts.scatter(escaped.arg_true(), _each(texts.filter(escaped), decode_escape))


def unescape_entities(text: str) -> str:
    """Undo the entities of one text; unknown entities stay as they are."""
    return _ENTITY.sub(_entity, text)


def decode_escape(text: str) -> str:
    """Undo Excel's escapes in one text; `_x005F_` protects text that looks like an escape."""
    decoded = _EXCEL.sub(lambda found: chr(int(found[1], 16)), text)
    return (
        _SURROGATE.sub(
            lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), decoded
        )
        .encode("utf-8", "replace")
        .decode()
    )


def _entity(found: re.Match[str]) -> str:
    decimal, hexadecimal, name = found.groups()
    if name:
        return _NAMED[f"&{name};"]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    valid = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if valid else "\ufffd"


def _each(texts: pl.Series, change: Callable[[str], str]) -> pl.Series:
    """Change texts one by one, calling `change` once for each distinct text."""
    changed = {text: change(text) for text in texts.unique().to_list()}
    return pl.Series([changed[text] for text in texts.to_list()], dtype=pl.String)
