"""Compare headers, ignoring case, accents, punctuation and common abbreviations."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ade_engine.package.header_parts import header_parts

SAME = 1.0
SAME_WORDS = 0.9
UNIT_APART = 0.92
REMARK_APART = 0.85
LAST_LEVEL = 0.85
NEARLY = 0.8
WITHIN = 0.7
SPELLING_RATIO_MIN = 0.85
HEADER_CHARACTERS_MAX = 200

_ABBREVIATIONS = {
    "no": "number",
    "nr": "number",
    "num": "number",
    "nbr": "number",
    "pct": "percent",
    "amt": "amount",
    "qty": "quantity",
    "dob": "birth date",
}
_SIGNS = str.maketrans({"#": " number ", "%": " percent ", "&": " and ", "№": " number "})


def normalized_words(text: str) -> tuple[str, ...]:
    """Return the words of a header without case, accents, punctuation or abbreviations."""
    return _words(text, split_case=True)


def word_variants(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of a header, with and without a word break at a change of case.

    `EmployeeID` is two words, but `USt`, `DoB` and `PhD` are one.
    """
    return tuple(dict.fromkeys((_words(text, split_case=True), _words(text, split_case=False))))


@lru_cache(maxsize=65_536)
def _words(text: str, *, split_case: bool) -> tuple[str, ...]:
    text = unicodedata.normalize("NFKD", text[:HEADER_CHARACTERS_MAX].translate(_SIGNS))
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    if split_case:
        text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    found = re.findall(r"\w+", text.replace("_", " ").casefold())
    return tuple(word for one in found for word in _ABBREVIATIONS.get(one, one).split())


@dataclass(frozen=True)
class FieldName:
    """One of the names by which a field is known."""

    words: tuple[str, ...]

    def likeness(self, header: tuple[str, ...]) -> float:
        """Return how similar a header is to this name, from 0 to 1."""
        if header == self.words:
            return SAME
        ours, theirs = set(self.words), set(header)
        if ours == theirs:
            return SAME_WORDS
        ratio = _spelling(" ".join(self.words), " ".join(header))
        likeness = NEARLY * ratio if ratio >= SPELLING_RATIO_MIN else 0.0
        if ours < theirs or theirs < ours:
            shared = min(len(ours), len(theirs)) / max(len(ours), len(theirs))
            return max(likeness, WITHIN * shared)
        return likeness


@dataclass(frozen=True)
class FieldNames:
    """All names of a field."""

    names: tuple[FieldName, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> FieldNames:
        """Make names from texts, leaving out duplicates."""
        words = dict.fromkeys(found for text in texts for found in word_variants(text) if found)
        return cls(tuple(FieldName(one) for one in words))

    def likeness(self, header: str, last_level: str = "") -> float:
        """Return how similar a header is to the most similar of the names.

        The header without its unit, or without what it has in brackets, and the last row of a
        header of several rows are also compared, at a small discount.
        """
        whole = self._of_text(header)
        if last_level and last_level != header:
            whole = max(whole, LAST_LEVEL * self._of_text(last_level))
        return whole

    def _of_text(self, header: str) -> float:
        parts = header_parts(header)
        found = self._best(header)
        if parts.name != header.strip() and (parts.unit or parts.scale > 1 or parts.remark):
            discount = REMARK_APART if parts.remark else UNIT_APART
            found = max(found, discount * self._best(parts.name))
        return found

    def _best(self, text: str) -> float:
        variants = [words for words in word_variants(text) if words]
        return max((name.likeness(words) for name in self.names for words in variants), default=0.0)


@lru_cache(maxsize=65_536)
def _spelling(one: str, other: str) -> float:
    if abs(len(one) - len(other)) > max(len(one), len(other)) * (1 - SPELLING_RATIO_MIN) * 2:
        return 0.0
    if min(len(one), len(other)) < 4:
        return 0.0  # short words are similar by chance
    first, second = sorted((one, other))
    return float(difflib.SequenceMatcher(None, first, second).ratio())
