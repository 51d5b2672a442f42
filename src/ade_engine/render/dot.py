"""Read DOT as far as needed to refuse what would make a picture depend on files of the machine.

Graphviz takes pictures, shapes, fonts and styles from files that attributes name. Walls keep
secrets from it, and it is started in its own safe mode besides; but what a diagram looks like must
not depend on where it was drawn. So these attributes are errors, told with their line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ade_engine.render.errors import BadDiagram

CHARS_MAX = 200_000
READING_FILES = {"image", "imagepath", "shapefile", "fontpath", "stylesheet", "_background"}
TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<html><)"
    r"|(?P<sign>.)",
    re.DOTALL | re.MULTILINE,
)
ANGLE = re.compile(r"<!--.*?-->|[<>]", re.DOTALL)
PICTURE = re.compile(r"<\s*img\b", re.IGNORECASE)


def with_defaults(source: str, statements: str) -> str:
    """Put statements where a graph begins: whatever it says itself comes later and holds.

    Options of the command line would do the opposite. They stand on the line of the brace, so that
    no line gets another number.
    """
    signs = (token for token in _tokens(source) if token.kind == "sign")
    brace = next((token.at for token in signs if token.text == "{"), None)
    return source if brace is None else f"{source[: brace + 1]}{statements}{source[brace + 1 :]}"


class Token(NamedTuple):
    kind: str
    text: str
    at: int


def check(source: str) -> None:
    """Refuse a diagram that is too long or that names files."""
    if len(source) > CHARS_MAX:
        raise BadDiagram(f"The diagram has {len(source):,} characters; there can be {CHARS_MAX:,}")
    if "\x00" in source:
        raise BadDiagram("The diagram holds a character that means nothing", line=1)
    name: Token | None = None
    for token in _joined(_tokens(source)):
        if token.kind == "html" and PICTURE.search(token.text):
            raise BadDiagram("<IMG> reads a file", line=_line(source, token.at))
        if name is not None and token[:2] == ("sign", "=") and name.text in READING_FILES:
            said = f"The attribute {name.text} reads a file or names one"
            raise BadDiagram(said, line=_line(source, name.at))
        name = token if token.kind in ("name", "quoted") else None


def _tokens(source: str) -> Iterator[Token]:
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        assert match is not None  # any sign is a token
        text, at = match[0], match.end()
        if match.lastgroup == "html":
            at = _closing(source, at)
            text = source[match.start() : at]
        if match.lastgroup == "quoted":
            text = re.sub(r"\\\n", "", text[1:-1]).replace('\\"', '"')
        if match.lastgroup != "space":
            yield Token(match.lastgroup or "", text, match.start())


def _closing(source: str, at: int) -> int:
    """Return where a label of HTML ends: its angles are balanced, but for those in comments."""
    depth = 1
    for angle in ANGLE.finditer(source, at):
        depth += {"<": 1, ">": -1}.get(angle[0], 0)
        if depth == 0:
            return angle.end()
    return len(source)


def _joined(tokens: Iterator[Token]) -> Iterator[Token]:
    """Join strings that are added with +: Graphviz does."""
    last: Token | None = None
    plus = False
    for token in tokens:
        if plus and last is not None and token.kind == "quoted":
            last, plus = Token("quoted", last.text + token.text, last.at), False
            continue
        if last is not None and last.kind == "quoted" and token.text == "+":
            plus = True
            continue
        if last is not None:
            yield last
        last, plus = token, False
    if last is not None:
        yield last


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1
