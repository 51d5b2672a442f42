"""Choose fonts: those embedded in Typst, and fonts of the host only for missing characters.

The embedded fonts have Latin, Greek, Cyrillic, Hebrew, Arabic and most symbols. A document that
needs no others looks the same on every host. For other characters (Chinese, Japanese, Korean, Thai,
emoji) the fonts of the host are used too, if it has any, with a warning.
"""

import functools
import re
import unicodedata
from pathlib import Path
from typing import Literal

import typst

from ade_engine.export.export_warnings import ExportWarnings

FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
SHOWN_MAX = 20
_MISSING = re.compile(r'the text `"((?:[^"\\]|\\.)+)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]+)\}")
# A PDF standard that requires a glyph for every character, so that Typst reports missing ones.
STRICT: Literal["a-2b"] = "a-2b"


@functools.cache
def embedded_fonts() -> typst.Fonts:
    """Return the fonts that are embedded in Typst."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)


def fonts_for(characters: set[str], folder: Path, warnings: ExportWarnings) -> typst.Fonts:
    """Return fonts for these characters; warn if some are missing or the host's are used."""
    visible = {character for character in characters if _needs_glyph(character)}
    missing = missing_glyphs(visible, folder, embedded_fonts())
    if not missing:
        return embedded_fonts()
    folders = [path for path in FOLDERS if path.is_dir()]
    more = typst.Fonts(
        include_system_fonts=False, include_embedded_fonts=True, font_paths=list(folders)
    )
    still_missing = missing_glyphs(missing, folder, more)
    if still_missing:
        warnings.add(
            "missing_glyphs", f"No font on this host has these characters: {_shown(still_missing)}."
        )
    if still_missing == missing:
        return embedded_fonts()
    warnings.add(
        "machine_fonts",
        "Fonts of this host were used, so the result may differ on another host: "
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
    """Tell whether a character is visible and not ASCII, which every font has."""
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
