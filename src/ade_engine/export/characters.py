"""Make strangers' characters fit to be set: nothing that cannot be shown, no endless words."""

import re
import unicodedata

# What a terminal understands and a page does not.
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\ufdd0-\ufdef\u2028\u2029]"
)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"
# Longer than any word of a language that is set without a hyphen.
WORD_CHARS_MAX = 30
CODE_WORD_CHARS_MAX = 60
CELL_WORD_CHARS_MAX = 12
# Each place for a break costs time, more than in proportion: endless words have fewer of them.
ENDLESS_CHARS, ENDLESS_STEP, ENDLESS_STEP_MAX = 200, 6, 30
# Scripts without spaces between words: lines end in them by rules that typesetters know.
_SPACELESS = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7af"
    "\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
_BREAK_AFTER = re.compile(r"(?<=[/\\.,;:_\-?&=+@#%|)\]}])(?=[^\W\d_])")


def clean(text: str) -> str:
    """Return the text without what cannot be shown; line ends are all of one kind."""
    text = ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return UNPRINTABLE.sub(_instead, text)


def _instead(found: re.Match[str]) -> str:
    if found[0] in "\u2028\u2029\x0b\x0c\x85":
        return "\n"
    return REPLACEMENT if unicodedata.category(found[0]) == "Cs" else ""


def one_line(text: str) -> str:
    """Return the text on one line."""
    return " ".join(clean(text).split())


def breakable(text: str, word_chars_max: int = WORD_CHARS_MAX) -> str:
    """Return the text with places inside of overlong words where a line may end.

    Without them such a word would run off the page. Whoever copies it out of a PDF gets them too.
    """
    return re.sub(
        rf"[^\s{_SPACELESS}]{{{word_chars_max + 1},}}",
        lambda found: _with_breaks(found[0], word_chars_max),
        text,
    )


def _with_breaks(word: str, chars_max: int) -> str:
    """Allow a break where addresses and paths have their joints, and else between any letters."""
    step = 1
    if len(word) > ENDLESS_CHARS:
        step = min(ENDLESS_STEP_MAX, ENDLESS_STEP + len(word) // 5_000)
    return ZERO_WIDTH_SPACE.join(
        part if len(part) <= chars_max else ZERO_WIDTH_SPACE.join(_pieces(part, step))
        for part in _BREAK_AFTER.split(word)
    )


def _pieces(word: str, step: int) -> list[str]:
    """Take a word apart between its letters; marks stay with the letter that they belong to."""
    letters: list[str] = []
    for char in word:
        if letters and unicodedata.category(char) in {"Mn", "Mc", "Me", "Cf"}:
            letters[-1] += char
        else:
            letters.append(char)
    return ["".join(letters[at : at + step]) for at in range(0, len(letters), step)]
