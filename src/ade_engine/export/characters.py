"""Prepare untrusted text for typesetting: remove what cannot be shown, break overlong words."""

import re
import unicodedata

# Escape sequences of terminals.
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\ufdd0-\ufdef\u2028\u2029]"
)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"
# Longer words get break opportunities.
WORD_CHARS_MAX = 30
CODE_WORD_CHARS_MAX = 60
CELL_WORD_CHARS_MAX = 12
# Break opportunities cost more than linear time, so very long words get fewer of them.
ENDLESS_CHARS, ENDLESS_STEP, ENDLESS_STEP_MAX = 200, 6, 30
# Scripts without spaces between words; Typst knows where their lines can break.
_SPACELESS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7af"
    "\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
_BREAK_AFTER = re.compile(r"(?<=[/\\.,;:_\-?&=+@#%|)\]}])(?=[^\W\d_])")


def clean(text: str) -> str:
    """Return the text without characters that cannot be shown, with `\\n` for every line end."""
    text = ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return UNPRINTABLE.sub(_replacement, text)


def _replacement(found: re.Match[str]) -> str:
    if found[0] in "\u2028\u2029\x0b\x0c\x85":
        return "\n"
    return REPLACEMENT if unicodedata.category(found[0]) == "Cs" else ""


def one_line(text: str) -> str:
    """Return the text on one line."""
    return " ".join(clean(text).split())


def breakable(text: str, word_chars_max: int = WORD_CHARS_MAX) -> str:
    """Return the text with zero-width spaces in overlong words, where lines can break.

    Without them such a word would run off the page. Text copied from the PDF contains them too.
    """
    return re.sub(
        rf"[^\s{_SPACELESS}]{{{word_chars_max + 1},}}",
        lambda found: _with_breaks(found[0], word_chars_max),
        text,
    )


def _with_breaks(word: str, chars_max: int) -> str:
    """Allow breaks after the separators of URLs and paths, or else between letters."""
    step = 1
    if len(word) > ENDLESS_CHARS:
        step = min(ENDLESS_STEP_MAX, ENDLESS_STEP + len(word) // 5_000)
    return ZERO_WIDTH_SPACE.join(
        part if len(part) <= chars_max else ZERO_WIDTH_SPACE.join(_pieces(part, step))
        for part in _BREAK_AFTER.split(word)
    )


def _pieces(word: str, step: int) -> list[str]:
    """Split a word between its letters; combining marks stay with their letter."""
    letters: list[str] = []
    for char in word:
        if letters and unicodedata.category(char) in {"Mn", "Mc", "Me", "Cf"}:
            letters[-1] += char
        else:
            letters.append(char)
    return ["".join(letters[at : at + step]) for at in range(0, len(letters), step)]
