"""Set the unit of a header apart from its name: `Amount (EUR)` is `Amount` in `EUR`.

A unit is a fact about the column. It is one of a fixed list, so that it can be recorded even where
the texts of headers are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ade_engine.sheets.currencies import CODES, SIGNS

CHARACTERS_MAX = 200
_WORDS = """
% ‰ percent pct kg g mg t lb lbs oz km m cm mm mi ft yd in inch l ml hl m2 m² m3 m³ ha sqm sqft
h hr hrs hour hours min mins minutes sec seconds ms day days week weeks month months year years
yrs pcs pc pieces stk stück unit units ea each kwh mwh wh kw mw °c °f
"""
_UNITS = {word: word for word in _WORDS.split()}
_THOUSANDS = ("000", "000s", "'000", "thousand", "thousands", "tsd", "tsd.", "k")
_MILLIONS = ("million", "millions", "mio", "mio.", "mn", "m€", "m$", "mm$")
_BRACKETED = re.compile(r"\s*[(\[{]([^()\[\]{}]*)[)\]}]\s*")
_TRAILING = re.compile(
    r"^(.*\w.*?)(?:\s*[,/|]\s*|\s+-\s+|\s+in\s+)(\S{2,12}(?: \S{1,10})?)$", re.IGNORECASE
)
_CURRENCY_AT_END = re.compile(rf"^(.*\w.*?)\s+([A-Z]{{3}}|[{SIGNS}%])$")


@dataclass(frozen=True)
class HeaderParts:
    """A header without its unit and without what it has in brackets.

    `unit` is a currency (a code of ISO 4217 or a sign) or another unit in lower case. `scale` is
    1000 or 1000000 if the header says that the numbers are in thousands or millions. `remark` is
    whether something else is in brackets.
    """

    name: str
    unit: str | None = None
    scale: int = 1
    remark: bool = False


@lru_cache(maxsize=65_536)
def header_parts(header: str) -> HeaderParts:
    """Split a header into its parts."""
    text = header[:CHARACTERS_MAX].strip()
    unit, scale, remark = None, 1, False
    for content in _BRACKETED.findall(text):
        found = _unit(content)
        if found is None:
            remark = remark or bool(content.strip())
        else:
            unit, scale = found[0] or unit, max(found[1], scale)
    name = _BRACKETED.sub(" ", text).strip()
    if unit is None and scale == 1:
        for pattern in (_TRAILING, _CURRENCY_AT_END):
            matched = pattern.match(name)
            found = _unit(matched[2]) if matched else None
            if matched and found is not None:
                name, (unit, scale) = matched[1], found
                break
    if not re.search(r"\w", name):
        return HeaderParts(text)  # the unit is all that the header says
    return HeaderParts(name, unit, scale, remark)


def _unit(text: str) -> tuple[str | None, int] | None:
    """Return the unit and the scale that a text names, or None if it names anything else."""
    words = text.strip().removeprefix("in ").strip()
    if not words:
        return None
    if (unit := _single_unit(words)) is not None:
        return unit, 1
    for scale, names in ((1_000, _THOUSANDS), (1_000_000, _MILLIONS)):
        if words.lower() in names:
            return None, scale
    return _scaled(words)


def _scaled(words: str) -> tuple[str | None, int] | None:
    """Read `TEUR`, `T€`, `k$`, `EUR thousands`, `Mio EUR`."""
    if words[:1] in "Tk" and (unit := _single_unit(words[1:])) in (*CODES, *SIGNS):
        return unit, 1_000
    first, _, second = words.replace("of ", "").partition(" ")
    for scale, names in ((1_000, _THOUSANDS), (1_000_000, _MILLIONS)):
        if first.lower() in names and (unit := _single_unit(second)) is not None:
            return unit, scale
        if second.lower() in names and (unit := _single_unit(first)) is not None:
            return unit, scale
    return None


def _single_unit(word: str) -> str | None:
    if word in CODES or (len(word) == 1 and word in SIGNS):
        return word
    return _UNITS.get(word.lower())
