"""Choose fonts: those that come with the typesetter, and the machine's only where those have gaps.

The wheel's fonts have Latin, Greek, Cyrillic, Hebrew, Arabic and most symbols. A document that they
suffice for comes out the same on every machine. For others (Chinese, Japanese, Korean, Thai, emoji)
the machine's fonts are used too, if it has any, and a warning says so.
"""

import functools
import re
import unicodedata
from pathlib import Path
from typing import Literal

import typst

from ade_engine.export.export_warnings import Warnings

FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
SHOWN_MAX = 20
_MISSING = re.compile(r'the text `"((?:[^"\\]|\\.)+)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]+)\}")
# A standard that demands a glyph for every character.
STRICT: Literal["a-2b"] = "a-2b"


@functools.cache
def own_fonts() -> typst.Fonts:
    """Return the fonts of the wheel."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)


def fonts_for(characters: set[str], folder: Path, warnings: Warnings) -> typst.Fonts:
    """Return fonts that have these characters, as far as there are any."""
    asked = {character for character in characters if _needs_glyph(character)}
    missing = missing_glyphs(asked, folder, own_fonts())
    if not missing:
        return own_fonts()
    places = [place for place in FOLDERS if place.is_dir()]
    more = typst.Fonts(
        include_system_fonts=False, include_embedded_fonts=True, font_paths=list(places)
    )
    still_missing = missing_glyphs(missing, folder, more)
    if still_missing:
        warnings.add(
            "missing_glyphs", f"No font here has these characters: {_shown(still_missing)}."
        )
    if still_missing == missing:
        return own_fonts()
    warnings.add(
        "machine_fonts",
        "Fonts of this machine were used, others may have others: "
        f"{_shown(missing - still_missing)}.",
    )
    return more


def missing_glyphs(characters: set[str], folder: Path, fonts: typst.Fonts) -> set[str]:
    """Return those of the characters that no font has."""
    if not characters:
        return set()
    try:
        typst.compile(
            folder / "characters.typ",
            root=folder.parent,
            font_paths=fonts,
            pdf_standards=STRICT,
            sys_inputs={"characters": "".join(sorted(characters))},
        )
    except typst.TypstError as error:
        return {_unescaped(found[1]) for found in _MISSING.finditer(error.diagnostic)}
    return set()


def _needs_glyph(character: str) -> bool:
    """Tell whether a character is seen; letters of ASCII are in every font."""
    if (
        character.isascii()
        or "\N{VARIATION SELECTOR-1}" <= character <= "\N{VARIATION SELECTOR-16}"
    ):
        return False
    return unicodedata.category(character) not in {"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me", "Mc"}


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _shown(characters: set[str]) -> str:
    some = sorted(characters)[:SHOWN_MAX]
    more = f" and {len(characters) - SHOWN_MAX} more" if len(characters) > SHOWN_MAX else ""
    return " ".join(some) + more
