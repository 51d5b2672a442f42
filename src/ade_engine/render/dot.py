"""Parse DOT as far as needed to reject what must not reach Graphviz.

Graphviz reads images, shapes, fonts and styles from files that attributes name. The sandbox keeps
secrets from it, and it is started in its safe mode; but what a diagram looks like must not depend
on the host that draws it. So these attributes are errors, reported with their line.

Graphviz 2.43 copies font names and URLs into the SVG without escaping (later versions escape some
of them), so that a quotation mark in one could start an attribute or an element of the author's
choice. Such values are errors too. A URL can still get a quotation mark from the name of its node,
by `\\N`. What finally makes all of this harmless is the copy made by `ade_engine.render.safe_svg`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from ade_engine.render.render_errors import BadDiagram

CHARS_MAX = 200_000
FILE_ATTRIBUTES = {"image", "imagepath", "shapefile", "fontpath", "stylesheet", "_background"}
FONTS = {"fontname", "labelfontname"}
LINKS = {
    f"{part}{word}" for part in ("", "head", "tail", "edge", "label") for word in ("URL", "href")
}
FORBIDDEN_IN_ATTRIBUTE = {**dict.fromkeys(FONTS, '"<>&'), **dict.fromkeys(LINKS, '"<>')}
FORBIDDEN_IN_HTML = {"face": '"<>&', "href": '"<>'}
# A string or comment that is never closed ends with the text. Otherwise each opening character
# would search the rest of the text again, which takes quadratic time.
TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|^\#[^\n]*)"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*(?:"|\\?\Z))'
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<html><)"
    r"|(?P<sign>.)",
    re.DOTALL | re.MULTILINE,
)
ANGLE = re.compile(r"<!--.*?(?:-->|\Z)|[<>]", re.DOTALL)
IMG_TAG = re.compile(r"<\s*img\b", re.IGNORECASE)
HTML_ATTRIBUTE = re.compile(r"""\b(face|href)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def with_defaults(source: str, statements: str) -> str:
    """Insert statements at the start of a graph, so that its own statements override them.

    Options on the command line of `dot` would override the graph instead. The statements go on the
    line of the opening brace, so that line numbers in errors stay right.
    """
    signs = (token for token in _tokens(source) if token.kind == "sign")
    brace = next((token.at for token in signs if token.text == "{"), None)
    return source if brace is None else f"{source[: brace + 1]}{statements}{source[brace + 1 :]}"


class DotToken(NamedTuple):
    """A name, a string without its quotes, an HTML label, or one character."""

    kind: str
    text: str
    at: int


def check(source: str) -> None:
    """Reject a diagram that is too long, names files, or could inject markup into its SVG."""
    if len(source) > CHARS_MAX:
        raise BadDiagram(
            f"The diagram has {len(source):,} characters; at most {CHARS_MAX:,} are allowed"
        )
    if "\x00" in source:
        raise BadDiagram("The diagram contains a NUL character", line=1)
    name: DotToken | None = None
    attribute: DotToken | None = None  # whose value comes next
    for token in _joined(_tokens(source)):
        if problem := _problem_with(token, attribute):
            raise BadDiagram(problem, line=_line(source, token.at))
        attribute = name if token[:2] == ("sign", "=") else None
        if attribute is not None and attribute.text in FILE_ATTRIBUTES:
            problem = f"The attribute {attribute.text} is not allowed: it reads a file"
            raise BadDiagram(problem, line=_line(source, attribute.at))
        name = token if token.kind in ("name", "quoted") else None


def _problem_with(token: DotToken, attribute: DotToken | None) -> str | None:
    """Return what is wrong with a token, which is the value of `attribute` if there is one."""
    if attribute is not None and (forbidden := FORBIDDEN_IN_ATTRIBUTE.get(attribute.text)):
        value = token.text[1:-1] if token.kind == "html" else token.text
        if found := set(forbidden) & set(value):
            return f"The attribute {attribute.text} cannot contain {min(found)}"
    if token.kind != "html":
        return None
    if IMG_TAG.search(token.text):
        return "<IMG> is not allowed: it reads a file"
    for match in HTML_ATTRIBUTE.finditer(token.text):
        value = html.unescape(match[2] or match[3] or "")
        if found := set(FORBIDDEN_IN_HTML[match[1].lower()]) & set(value):
            return f"{match[1].upper()} cannot contain {min(found)}"
    return None


def _tokens(source: str) -> Iterator[DotToken]:
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        assert match is not None  # any character is a token
        text, at = match[0], match.end()
        if match.lastgroup == "html":
            at = _closing(source, at)
            text = source[match.start() : at]
        if match.lastgroup == "quoted":
            text = re.sub(r"\\\n", "", text[1:-1]).replace('\\"', '"')
        if match.lastgroup != "space":
            yield DotToken(match.lastgroup or "", text, match.start())


def _closing(source: str, at: int) -> int:
    """Return where an HTML label ends: its angle brackets balance, except those in comments."""
    depth = 1
    for angle in ANGLE.finditer(source, at):
        depth += {"<": 1, ">": -1}.get(angle[0], 0)
        if depth == 0:
            return angle.end()
    return len(source)


def _joined(tokens: Iterator[DotToken]) -> Iterator[DotToken]:
    """Join strings that are concatenated with +, as Graphviz does."""
    last: DotToken | None = None
    plus = False
    for token in tokens:
        if plus and last is not None and token.kind == "quoted":
            last, plus = DotToken("quoted", last.text + token.text, last.at), False
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
