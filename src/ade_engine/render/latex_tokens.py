"""Split the source of a formula in LaTeX into tokens, and say where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(
    r"(?P<comment>%[^\n]*\n?)"
    r"|(?P<row>\\\\\*?(?:\[\s*-?[\d.]+\s*[a-z]{2}\s*\])?)"
    r"|(?P<environment>\\(?:begin|end)\s*\{[^{}\\]*\})"
    r"|(?P<command>\\(?:operatorname\*|tag\*|hspace\*|[a-zA-Z]+|.))"
    r"|(?P<sign>.)",
    re.DOTALL,
)
WRAPPED = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))


class LatexToken(NamedTuple):
    """A comment, the end of a row, an environment, a command, or one character."""

    kind: str
    text: str
    at: int


def line_and_column(latex: str, at: int) -> tuple[int, int]:
    """Return line and column of a character, both counted from 1."""
    before = latex[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def formula_span(latex: str) -> tuple[int, int]:
    """Return start and end of the formula without `$` or `\\[`, which people often copy with it."""
    start, end = len(latex) - len(latex.lstrip()), len(latex.rstrip())
    for opening, closing in WRAPPED:
        whole = latex[start:end]
        inner = whole[len(opening) : -len(closing)]
        if whole.startswith(opening) and whole.endswith(closing) and opening not in inner:
            return (start + len(opening), end - len(closing)) if inner else (start, end)
    return start, end


def tokens_of(latex: str, start: int, end: int) -> Iterator[LatexToken]:
    """Yield the tokens of a part of a formula."""
    for match in TOKEN.finditer(latex, start, end):
        yield LatexToken(match.lastgroup or "", match[0], match.start())


def environment_name(token: LatexToken) -> str:
    """Return the name of an environment, "" for other tokens."""
    return token.text.partition("{")[2].rstrip("}").strip() if token.kind == "environment" else ""


def find_token(tokens: list[LatexToken], text: str, start: int) -> int | None:
    """Return the index of the first token with a text, from `start` on."""
    return next((at for at in range(start, len(tokens)) if tokens[at].text == text), None)


def shown_token(token: LatexToken) -> str:
    """Return a token as messages show it."""
    return re.sub(r"\s", "", token.text)
