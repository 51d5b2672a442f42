"""Escape texts for XML so that they are read back unchanged and never as a formula.

Most texts need no escaping. All texts of a block are first scanned as one buffer, which costs
almost nothing; only the escapes that the scan found necessary are then applied to each text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import polars as pl

from ade_engine.sheets.arrays import ByteArray

TEXT_CHARS_MAX = 32_767  # Excel calls a workbook with a longer text damaged

_SPECIAL = r"[\x00-\x08\x0B-\x1F\u{FFFE}\u{FFFF}]|_x[0-9A-Fa-f]{4}_"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_LOOKALIKE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_NEVER = str.maketrans({"\ufffe": "\ufffd", "\uffff": "\ufffd"})
_FORMULA_LIKE = "^[=+@-]"

_BETWEEN = b"\n"


class _Seen(IntFlag):
    """What a byte may be part of, which decides the escapes to apply."""

    MARKUP = 1
    CONTROL = 2
    ESCAPE = 4  # the underscore of _x000D_, the first byte of U+FFFE
    FORMULA = 8  # at the beginning of a text
    SPACE = 16  # at either end of a text; includes bytes of the no-break space


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
    """Escaped texts, and what their XML elements need."""

    text: pl.Series
    literal: pl.Series | None
    """Marks the texts that begin like a formula; None if there are none."""
    keeps_space: bool

    @property
    def opening(self) -> str:
        """Return the opening tags of a text."""
        return '<is><t xml:space="preserve">' if self.keeps_space else "<is><t>"

    def cells(self, style: str, literal_style: str) -> pl.Series:
        """Return the XML after the reference of each cell, which begins with its style."""
        plain = f' t="inlineStr">{self.opening}' + self.text + "</t></is></c>"
        if self.literal is None:
            return style + plain
        return (style + plain).zip_with(~self.literal.fill_null(False), literal_style + plain)


def escaped(texts: pl.Series) -> EscapedTexts:
    """Escape texts for XML."""
    joined: bytes = texts.str.join(_BETWEEN.decode(), ignore_nulls=True).cast(pl.Binary).item()
    classes = _TABLE[np.frombuffer(joined, np.uint8)]
    seen = int(np.bitwise_or.reduce(classes)) if len(classes) else 0
    at_ends, breaks = _at_ends(joined, classes)
    literal = texts.str.contains(_FORMULA_LIKE) if at_ends & _Seen.FORMULA else None
    # Texts are joined by line breaks: more breaks than texts means that a text contains one.
    inside = breaks > max(len(texts) - texts.null_count() - 1, 0)
    if seen & _Seen.MARKUP:
        texts = texts.str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
    if seen & (_Seen.CONTROL | _Seen.ESCAPE):
        special = texts.str.contains(_SPECIAL).fill_null(False)
        if special.any():
            changed = [_escape_special(piece) for piece in texts.filter(special).to_list()]
            # scatter changes a series in place, and this one belongs to the caller.
            texts = texts.clone().scatter(special.arg_true(), pl.Series(changed, dtype=pl.String))
    return EscapedTexts(texts, literal, inside or bool(at_ends & _Seen.SPACE))


def _at_ends(joined: bytes, classes: ByteArray) -> tuple[int, int]:
    """Return the classes of the first and last bytes of texts, and the number of line breaks."""
    if not len(classes):
        return 0, 0
    breaks = np.flatnonzero(np.frombuffer(joined, np.uint8) == _BETWEEN[0])
    last = len(classes) - 1
    ends = classes[[0, last]]
    around = classes[np.minimum(breaks + 1, last)], classes[np.maximum(breaks - 1, 0)]
    return int(np.bitwise_or.reduce(np.concatenate((ends, *around)))), len(breaks)


def escape_text(text: str) -> str:
    """Escape one text for XML."""
    return _escape_special(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _escape_special(text: str) -> str:
    """Apply Excel's escapes to characters that XML cannot hold, and to look-alikes of escapes."""
    text = _LOOKALIKE.sub("_x005F_", text).translate(_NEVER)
    return _CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def shortened(texts: pl.Series) -> tuple[pl.Series, int, int]:
    """Truncate texts that are too long for a cell; return also their number, and the most bytes."""
    longest = texts.str.len_bytes().max()
    bytes_max = longest if isinstance(longest, int) else 0
    if bytes_max <= TEXT_CHARS_MAX:
        return texts, 0, bytes_max
    long = (texts.str.len_chars() > TEXT_CHARS_MAX).fill_null(False)
    cut = texts.zip_with(~long, texts.str.slice(0, TEXT_CHARS_MAX))
    return cut, int(long.sum()), bytes_max
