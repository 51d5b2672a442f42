"""Choose fonts: those embedded in Typst, then those of packages, then those of the host.

The embedded fonts have Latin, Greek, Cyrillic, Hebrew, Arabic and most symbols. The packages of the
extra `fonts` add Chinese, Japanese, Korean and Thai, that of the extra `emoji` emoji in one colour.
A document that needs no others looks the same on every host with the same packages. For other
characters the fonts of the host are used too, if it has any, with a warning.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import typst

from ade_engine.export.export_warnings import ExportWarnings

# The folders of fonts in packages, none of which is imported.
PACKAGES = {
    "noto_cjk_sans_otc": "",
    "fontpkg_noto_sans_thai": "",
    "imgui_bundle": "demos_assets/fonts",
}
EMOJI_FAMILY = "Noto Emoji"
FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
SHOWN_MAX = 20
_MISSING = re.compile(r'the text `"((?:[^"\\]|\\.)+)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-fA-F]+)\}")
# A PDF standard that requires a glyph for every character, so that Typst reports missing ones.
STRICT: Literal["a-2b"] = "a-2b"
# Chinese, Japanese and Korean write the same characters differently.
CJK_FAMILIES = {"ja": "Noto Sans CJK JP", "ko": "Noto Sans CJK KR", "zh": "Noto Sans CJK SC"}
TRADITIONAL = "Noto Sans CJK TC"
TRADITIONAL_REGIONS = {"tw", "hk", "mo"}
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\u1100-\u11ff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class ChosenFonts:
    """The fonts of a document, and the families that come before any other with a character."""

    fonts: typst.Fonts
    families: tuple[str, ...] = ()


@functools.cache
def embedded_fonts() -> typst.Fonts:
    """Return the fonts that are embedded in Typst."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)


def fonts_for(
    characters: set[str], language: str, folder: Path, warnings: ExportWarnings
) -> ChosenFonts:
    """Return fonts for these characters; warn if some are missing or the host's are used."""
    visible = {character for character in characters if _needs_glyph(character)}
    missing = missing_glyphs(visible, folder, embedded_fonts())
    if not missing:
        return ChosenFonts(embedded_fonts())
    families = (_cjk_family(language, "".join(missing)), EMOJI_FAMILY)
    packaged = _with_folders(_package_folders())
    missing = missing_glyphs(missing, folder, packaged)
    if not missing:
        return ChosenFonts(packaged, families)
    more = _with_folders((*_package_folders(), *(path for path in FOLDERS if path.is_dir())))
    still_missing = missing_glyphs(missing, folder, more)
    if still_missing:
        warnings.add(
            "missing_glyphs",
            f"No font has these characters, so they are shown as boxes: {_shown(still_missing)}. "
            "The extra ade[fonts] has Chinese, Japanese, Korean and Thai, ade[emoji] has emoji; "
            "for others, install a font on the host.",
        )
    if still_missing == missing:
        return ChosenFonts(packaged, families)
    warnings.add(
        "machine_fonts",
        "Fonts of this host were used, so the result may differ on another host: "
        f"{_shown(missing - still_missing)}.",
    )
    return ChosenFonts(more, families)


def _with_folders(folders: Iterable[Path]) -> typst.Fonts:
    return typst.Fonts(
        include_system_fonts=False, include_embedded_fonts=True, font_paths=list(folders)
    )


@functools.cache
def _package_folders() -> tuple[Path, ...]:
    """Return the folders of the font packages that are installed."""
    found = []
    for package, folder in PACKAGES.items():
        if (spec := find_spec(package)) is not None:
            found += [Path(place, folder) for place in spec.submodule_search_locations or ()]
    return tuple(found)


def _cjk_family(language: str, text: str) -> str:
    """Return the family for the document's language, or for what its characters tell."""
    name, _, region = language.lower().partition("-")
    if name == "zh" and region in TRADITIONAL_REGIONS:
        return TRADITIONAL
    if name in CJK_FAMILIES:
        return CJK_FAMILIES[name]
    if _KANA.search(text):
        return CJK_FAMILIES["ja"]
    return CJK_FAMILIES["ko" if _HANGUL.search(text) else "zh"]


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
