"""Write texts so that they are read back as they are: never as a formula, never too long."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from ade_engine.writing.parts import STYLE_LITERAL

TEXT_CHARS_MAX = 32_767  # more, and Excel calls the workbook damaged

_SPECIAL = r"[\x00-\x08\x0B-\x1F\u{FFFE}\u{FFFF}]|_x[0-9A-Fa-f]{4}_"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_LOOKALIKE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_NEVER = str.maketrans({"\ufffe": "\ufffd", "\uffff": "\ufffd"})
_FORMULA_LIKE = "^[=+@-]"


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts as they stand in XML, and how their element must begin."""

    text: pl.Series
    literal: pl.Series
    """Which of them begin like a formula."""
    keeps_space: bool

    @property
    def any_literal(self) -> bool:
        """Tell whether some text begins like a formula."""
        return bool(self.literal.any())

    @property
    def opening(self) -> str:
        """Give the tags before the text."""
        return '<is><t xml:space="preserve">' if self.keeps_space else "<is><t>"

    def cells(self) -> pl.Series:
        """Give everything behind the reference of a cell."""
        plain = f' t="inlineStr">{self.opening}' + self.text + "</t></is></c>"
        if not self.any_literal:
            return plain
        style = f' s="{STYLE_LITERAL}"'
        return plain.zip_with(~self.literal.fill_null(False), style + plain)


def escaped(texts: pl.Series) -> Texts:
    """Prepare texts for XML."""
    literal = texts.str.contains(_FORMULA_LIKE)
    texts = texts.str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
    special = texts.str.contains(_SPECIAL)
    if special.any():
        pieces = texts.filter(special).to_list()
        changed = pl.Series([_escape_special(piece) for piece in pieces], dtype=pl.String)
        texts = texts.scatter(special.arg_true(), changed)
    spaced = texts.str.contains(r"^\s|\s$|\n")
    return Texts(texts, literal, bool(spaced.any()))


def _escape_special(text: str) -> str:
    """Write what XML cannot hold in Excel's way, and protect what only looks like that."""
    text = _LOOKALIKE.sub("_x005F_", text).translate(_NEVER)
    return _CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def shortened(texts: pl.Series) -> tuple[pl.Series, int]:
    """Cut texts that no cell can hold; say how many."""
    if int(texts.str.len_bytes().max() or 0) <= TEXT_CHARS_MAX:  # type: ignore[arg-type]
        return texts, 0
    long = (texts.str.len_chars() > TEXT_CHARS_MAX).fill_null(False)
    cut = texts.zip_with(~long, texts.str.slice(0, TEXT_CHARS_MAX))
    return cut, int(long.sum())
