"""Write texts so that they are read back as they are: never as a formula, never too long.

Most blocks of texts hold nothing special, so all of them are first looked through as one long
buffer, which costs almost nothing; only what was seen there is then done to each text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import ByteArray
from ade_engine.writing.fixed_parts import STYLE_LITERAL

TEXT_CHARS_MAX = 32_767  # more, and Excel calls the workbook damaged

_SPECIAL = r"[\x00-\x08\x0B-\x1F\u{FFFE}\u{FFFF}]|_x[0-9A-Fa-f]{4}_"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_LOOKALIKE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_NEVER = str.maketrans({"\ufffe": "\ufffd", "\uffff": "\ufffd"})
_FORMULA_LIKE = "^[=+@-]"

_BETWEEN = b"\n"


class _Seen(IntFlag):
    """What a byte may be part of."""

    MARKUP = 1
    CONTROL = 2
    ESCAPE = 4  # the underscore of _x000D_, the first byte of U+FFFE
    FORMULA = 8  # if it begins a text
    SPACE = 16  # if it begins or ends one; the bytes of a no-break space too


def _table() -> ByteArray:
    table = np.zeros(256, np.uint8)
    table[[*b"&<>"]] |= np.uint8(_Seen.MARKUP)
    table[[code for code in range(32) if code not in b"\t\n"]] |= np.uint8(_Seen.CONTROL)
    table[[*b"_\xef"]] |= np.uint8(_Seen.ESCAPE)
    table[[*b"=+-@"]] |= np.uint8(_Seen.FORMULA)
    table[[*b" \t\xc2\xa0\xe2\xe3\x80"]] |= np.uint8(_Seen.SPACE)
    return table


_TABLE = _table()


@dataclass(frozen=True, slots=True)
class EscapedTexts:
    """Texts as they stand in XML, and how their element must begin."""

    text: pl.Series
    literal: pl.Series | None
    """Which of them begin like a formula, if any does."""
    keeps_space: bool

    @property
    def opening(self) -> str:
        """Return the tags before the text."""
        return '<is><t xml:space="preserve">' if self.keeps_space else "<is><t>"

    def cells(self) -> pl.Series:
        """Return everything behind the reference of a cell."""
        plain = f' t="inlineStr">{self.opening}' + self.text + "</t></is></c>"
        if self.literal is None:
            return plain
        style = f' s="{STYLE_LITERAL}"'
        return plain.zip_with(~self.literal.fill_null(False), style + plain)


def escaped(texts: pl.Series) -> EscapedTexts:
    """Prepare texts for XML."""
    joined: bytes = texts.str.join(_BETWEEN.decode(), ignore_nulls=True).cast(pl.Binary).item()
    classes = _TABLE[np.frombuffer(joined, np.uint8)]
    seen = int(np.bitwise_or.reduce(classes)) if len(classes) else 0
    at_ends, breaks = _at_ends(joined, classes)
    literal = texts.str.contains(_FORMULA_LIKE) if at_ends & _Seen.FORMULA else None
    # A line break inside a text looks like the end of one: more are counted than there are texts.
    inside = breaks > max(len(texts) - texts.null_count() - 1, 0)
    if seen & _Seen.MARKUP:
        texts = texts.str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
    if seen & (_Seen.CONTROL | _Seen.ESCAPE):
        special = texts.str.contains(_SPECIAL).fill_null(False)
        if special.any():
            changed = [_escape_special(piece) for piece in texts.filter(special).to_list()]
            texts = texts.scatter(special.arg_true(), pl.Series(changed, dtype=pl.String))
    return EscapedTexts(texts, literal, inside or bool(at_ends & _Seen.SPACE))


def _at_ends(joined: bytes, classes: ByteArray) -> tuple[int, int]:
    """Return the classes of the bytes where texts begin and end, and how many breaks there are."""
    if not len(classes):
        return 0, 0
    breaks = np.flatnonzero(np.frombuffer(joined, np.uint8) == _BETWEEN[0])
    last = len(classes) - 1
    ends = classes[[0, last]]
    around = classes[np.minimum(breaks + 1, last)], classes[np.maximum(breaks - 1, 0)]
    return int(np.bitwise_or.reduce(np.concatenate((ends, *around)))), len(breaks)


def _escape_special(text: str) -> str:
    """Write what XML cannot hold in Excel's way, and protect what only looks like that."""
    text = _LOOKALIKE.sub("_x005F_", text).translate(_NEVER)
    return _CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def shortened(texts: pl.Series) -> tuple[pl.Series, int]:
    """Cut texts that no cell can hold; say how many."""
    longest = texts.str.len_bytes().max()
    if not isinstance(longest, int) or longest <= TEXT_CHARS_MAX:
        return texts, 0
    long = (texts.str.len_chars() > TEXT_CHARS_MAX).fill_null(False)
    cut = texts.zip_with(~long, texts.str.slice(0, TEXT_CHARS_MAX))
    return cut, int(long.sum())
