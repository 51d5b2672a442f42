"""Read DOT as far as needed to refuse what should not come near Graphviz.

Graphviz takes pictures, shapes, fonts and styles from files that attributes name. Walls keep
secrets from it, and it is started in its own safe mode besides; but what a diagram looks like must
not depend on where it was drawn. So these attributes are errors, told with their line.

Names of fonts and addresses are copied into the SVG as they are (2.43 does; later ones escape some
of them), so that a quotation mark in one would begin an attribute or an element of the stranger's
own. Such values are errors too. An address can still get one from the name of its node, by `\\N`:
what keeps all of this from doing harm is that drawings are copied by `ade_engine.render.safe_svg`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from ade_engine.render.render_errors import BadDiagram

CHARS_MAX = 200_000
READING_FILES = {"image", "imagepath", "shapefile", "fontpath", "stylesheet", "_background"}
FONTS = {"fontname", "labelfontname"}
LINKS = {
    f"{part}{word}" for part in ("", "head", "tail", "edge", "label") for word in ("URL", "href")
}
COPIED = {**dict.fromkeys(FONTS, '"<>&'), **dict.fromkeys(LINKS, '"<>')}
COPIED_IN_HTML = {"face": '"<>&', "href": '"<>'}
# What is never closed ends with the text: else each beginning would look for its end anew.
TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|^\#[^\n]*)"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*(?:"|\\?\Z))'
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<html><)"
    r"|(?P<sign>.)",
    re.DOTALL | re.MULTILINE,
)
ANGLE = re.compile(r"<!--.*?(?:-->|\Z)|[<>]", re.DOTALL)
PICTURE = re.compile(r"<\s*img\b", re.IGNORECASE)
GIVEN = re.compile(r"""\b(face|href)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def with_defaults(source: str, statements: str) -> str:
    """Put statements where a graph begins: whatever it says itself comes later and holds.

    Options of the command line would do the opposite. They stand on the line of the brace, so that
    no line gets another number.
    """
    signs = (token for token in _tokens(source) if token.kind == "sign")
    brace = next((token.at for token in signs if token.text == "{"), None)
    return source if brace is None else f"{source[: brace + 1]}{statements}{source[brace + 1 :]}"


class Token(NamedTuple):
    """A piece of a diagram: a name, a string without its quotes, a label of HTML, or one sign."""

    kind: str
    text: str
    at: int


def check(source: str) -> None:
    """Refuse a diagram that is too long, names files, or writes into its SVG."""
    if len(source) > CHARS_MAX:
        raise BadDiagram(f"The diagram has {len(source):,} characters; there can be {CHARS_MAX:,}")
    if "\x00" in source:
        raise BadDiagram("The diagram holds a character that means nothing", line=1)
    name: Token | None = None
    attribute: Token | None = None  # whose value comes next
    for token in _joined(_tokens(source)):
        if said := _wrong(token, attribute):
            raise BadDiagram(said, line=_line(source, token.at))
        attribute = name if token[:2] == ("sign", "=") else None
        if attribute is not None and attribute.text in READING_FILES:
            said = f"The attribute {attribute.text} reads a file or names one"
            raise BadDiagram(said, line=_line(source, attribute.at))
        name = token if token.kind in ("name", "quoted") else None


def _wrong(token: Token, attribute: Token | None) -> str | None:
    """Say what is wrong with a token, the value of an attribute if there is one."""
    if attribute is not None and (refused := COPIED.get(attribute.text)):
        value = token.text[1:-1] if token.kind == "html" else token.text
        if held := set(refused) & set(value):
            return f"The attribute {attribute.text} cannot hold {min(held)}"
    if token.kind != "html":
        return None
    if PICTURE.search(token.text):
        return "<IMG> reads a file"
    for given in GIVEN.finditer(token.text):
        value = html.unescape(given[2] or given[3] or "")
        if held := set(COPIED_IN_HTML[given[1].lower()]) & set(value):
            return f"{given[1].upper()} cannot hold {min(held)}"
    return None


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
