"""Parse Markdown: CommonMark with tables, strikethrough and formulas in `$`.

Raw HTML is treated as text. A link that does not lead to the web or to mail becomes text. Blocks
that nest too deeply are shown at a lower depth; nothing is left out.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ade_engine.export import document_tree as tree
from ade_engine.export.document_tree import Alignment, Block, Blocks, Inline, Inlines

SCHEMES = frozenset({"http", "https", "mailto"})
URL_CHARS_MAX = 2_000
# Beyond this depth markdown-it drops text, so such a text is shown as plain text.
PARSER_NESTING_MAX = 60
BLOCK_DEPTH_MAX = 6
INLINE_DEPTH_MAX = 6
# Each bracket may make the parser scan the rest of the paragraph, which takes quadratic time.
BRACKETS_MAX = 1_000
DISPLAY = "$$"
_STYLES: dict[str, Any] = {"em": "emphasis", "strong": "strong", "s": "strike"}
_ALIGNED = re.compile(r"text-align:(left|center|right)")

Warn = Callable[[str, str], None]


class NestedTooDeeply(Exception):
    """The text nests deeper than the parser supports."""


def parse(text: str, warn: Warn) -> Blocks:
    """Return the blocks of a text; `warn` is called with a code and a sentence."""
    if any(paragraph.count("[") > BRACKETS_MAX for paragraph in text.split("\n\n")):
        warn("markdown_shown_plain", "The text has too many square brackets to be read as Markdown")
        return plain(text)
    try:
        return _BlockReader(_parser().parse(text), warn).blocks()
    except NestedTooDeeply:
        warn("markdown_shown_plain", "The text nests too deeply to be read as Markdown")
        return plain(text)


def plain(text: str) -> Blocks:
    """Return the paragraphs of a plain text, which empty lines separate; line ends are kept."""
    return tuple(
        tree.Paragraph(lines(paragraph.strip("\n")))
        for paragraph in re.split(r"\n[ \t]*\n", text)
        if paragraph.strip()
    )


def safe_url(url: str) -> str | None:
    """Return a URL if a document may link to it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if len(url) > URL_CHARS_MAX or parts.scheme not in SCHEMES:
        return None
    return url if parts.netloc or (parts.scheme == "mailto" and parts.path) else None


def lines(text: str) -> Inlines:
    """Return literal text with its line ends."""
    found: list[Inline] = []
    for line in text.split("\n"):
        found += (tree.Break(), tree.LiteralText(line)) if line else (tree.Break(),)
    return tuple(found[1:])


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": PARSER_NESTING_MAX})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("backticks", "math", _math_in_line)
    parser.block.ruler.before(
        "fence", "math", _math_on_lines, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # safe_url decides later
    return parser


def _math_in_line(state: StateInline, silent: bool) -> bool:
    """Find `$a+b$` and `$$a+b$$`; amounts of money (`$5 and $6`) are not formulas."""
    source, start = state.src, state.pos
    if source[start] != "$":
        return False
    mark = DISPLAY if source.startswith(DISPLAY, start) else "$"
    begin = start + len(mark)
    end = _closing(source, begin, mark)
    if end < 0 or not source[begin:end].strip():
        return False
    if mark == "$" and (
        source[begin].isspace() or source[end - 1].isspace() or source[end + 1 : end + 2].isdigit()
    ):
        return False
    if not silent:
        token = state.push("math_display" if mark == DISPLAY else "math", "", 0)
        token.content = source[begin:end].strip()
    state.pos = end + len(mark)
    return True


def _closing(source: str, begin: int, mark: str) -> int:
    """Return the position of the next mark that is not escaped by a backslash, or -1."""
    end = source.find(mark, begin)
    while end > 0 and _escaped(source, begin, end):
        end = source.find(mark, end + 1)
    return end


def _escaped(source: str, begin: int, at: int) -> bool:
    before = source[begin:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _math_on_lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Find a formula between lines that begin and end with `$$`, with no empty line in it.

    The search ends at the next line with `$$`, so that no text is scanned twice.
    """
    first = _line(state, start)
    if not first.startswith(DISPLAY) or state.is_code_block(start):
        return False
    if len(first) > 2 * len(DISPLAY) and first.endswith(DISPLAY):
        lines, last = [first[len(DISPLAY) : -len(DISPLAY)]], start
    else:
        last = start + 1
        while last < end and DISPLAY not in (closing := _line(state, last)):
            if not closing:
                return False
            last += 1
        if last >= end or DISPLAY in first[len(DISPLAY) :] or not closing.endswith(DISPLAY):
            return False
        inner = state.getLines(start + 1, last, state.blkIndent, False)
        lines = [first[len(DISPLAY) :], inner, closing[: -len(DISPLAY)]]
    latex = "\n".join(lines).strip()
    if not latex or DISPLAY in latex:
        return False
    if not silent:
        token = state.push("math_display", "", 0)
        token.content, token.block, token.map = latex, True, [start, last + 1]
        state.line = last + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


class _BlockReader:
    """Turn markdown-it's flat list of tokens into blocks."""

    def __init__(self, tokens: list[Token], warn: Warn) -> None:
        if any(token.level >= PARSER_NESTING_MAX - 1 for token in tokens):
            raise NestedTooDeeply
        self._tokens = iter(tokens)
        self._warn = warn

    def blocks(self, closing: str = "", depth: int = 0) -> Blocks:
        """Read up to the closing token, or to the end."""
        found: list[Block] = []
        for token in self._tokens:
            if token.type == closing:
                break
            found.extend(self._block(token, depth))
        return tuple(found)

    def _block(self, token: Token, depth: int) -> Blocks:
        match token.type:
            case "paragraph_open":
                return self._paragraph()
            case "heading_open":
                return (tree.Heading(int(token.tag[1]), self._inline("heading_close")),)
            case "blockquote_open":
                inner = self.blocks("blockquote_close", depth + 1)
                return (tree.QuoteBlock(inner),) if depth < BLOCK_DEPTH_MAX else inner
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, depth)
            case "fence" | "code_block":
                language = token.info.strip().split(maxsplit=1)
                return (
                    tree.CodeBlock(
                        token.content.removesuffix("\n"), language[0] if language else ""
                    ),
                )
            case "math_display":
                return (tree.FormulaBlock(token.content),)
            case "hr":
                return (tree.Rule(),)
            case "table_open":
                return (self._table(),)
        return ()

    def _paragraph(self) -> Blocks:
        """Read a paragraph; formulas on their own lines split it."""
        found: list[Block] = []
        line: list[Inline] = []
        for inline in self._pieces("paragraph_close"):
            if isinstance(inline, tree.FormulaBlock):
                found.extend(_paragraph(line))
                found.append(inline)
                line = []
            else:
                line.append(inline)
        return (*found, *_paragraph(line))

    def _list(self, opened: Token, depth: int) -> Blocks:
        items: list[Blocks] = []
        closing = opened.type.replace("_open", "_close")
        for token in self._tokens:
            if token.type == closing:
                break
            if token.type == "list_item_open":
                items.append(self.blocks("list_item_close", depth + 1))
        if depth >= BLOCK_DEPTH_MAX:
            return tuple(block for item in items for block in item)
        start = int(opened.attrs.get("start", 1)) if opened.type.startswith("ordered") else None
        return (tree.ListBlock(tuple(items), start),)

    def _table(self) -> tree.TableBlock:
        rows: list[list[Inlines]] = []
        alignment: list[Alignment] = []
        for token in self._tokens:
            match token.type:
                case "table_close":
                    break
                case "tr_open":
                    rows.append([])
                case "th_open":
                    alignment.append(_alignment(token))
                    rows[-1].append(self._inline("th_close"))
                case "td_open":
                    rows[-1].append(self._inline("td_close"))
        return tree.TableBlock(tuple(rows[0]), tuple(map(tuple, rows[1:])), tuple(alignment))

    def _inline(self, closing: str) -> Inlines:
        """Read a line of text in which every formula is inline."""
        return tuple(
            tree.InlineFormula(piece.latex) if isinstance(piece, tree.FormulaBlock) else piece
            for piece in self._pieces(closing)
        )

    def _pieces(self, closing: str) -> Iterator[Inline | tree.FormulaBlock]:
        for token in self._tokens:
            if token.type == closing:
                return
            yield from _InlineReader(token.children or [], self._warn).pieces()


class _InlineReader:
    """Turn the tokens of one line of text into inlines."""

    def __init__(self, tokens: list[Token], warn: Warn) -> None:
        self._tokens = iter(tokens)
        self._warn = warn

    def pieces(self) -> Iterator[Inline | tree.FormulaBlock]:
        """Read the line; a formula inside a style or a link is inline."""
        for token in self._tokens:
            if token.type == "math_display":
                yield tree.FormulaBlock(token.content)
            else:
                yield from self._piece(token, 0)

    def _until(self, closing: str, depth: int) -> Inlines:
        found: list[Inline] = []
        for token in self._tokens:
            if token.type == closing:
                break
            found.extend(self._piece(token, depth))
        return tuple(found)

    def _piece(self, token: Token, depth: int) -> Inlines:
        match token.type:
            case "text" | "text_special":
                return (tree.LiteralText(token.content),) if token.content else ()
            case "softbreak":
                return (tree.LiteralText(" "),)
            case "hardbreak":
                return (tree.Break(),)
            case "code_inline":
                return (tree.Code(token.content),)
            case "math" | "math_display":
                return (tree.InlineFormula(token.content),)
            case "link_open":
                return self._link(str(token.attrs.get("href", "")), depth)
            case "image":
                return self._image(token)
        style = _STYLES.get(token.type.removesuffix("_open"))
        if style is None:
            return ()
        inner = self._until(token.type.replace("_open", "_close"), depth + 1)
        return (tree.Styled(style, inner),) if depth < INLINE_DEPTH_MAX else inner

    def _link(self, href: str, depth: int) -> Inlines:
        inner = self._until("link_close", depth + 1)
        url = safe_url(href)
        if url is None:
            self._warn(
                "link_removed",
                "Only links to http, https and mailto addresses are kept; others became text",
            )
            return inner
        return (tree.Link(url, inner),) if depth < INLINE_DEPTH_MAX else inner

    def _image(self, token: Token) -> Inlines:
        """Show the alternative text: no image is fetched."""
        self._warn(
            "image_not_fetched",
            "Images in Markdown are not fetched; their alternative text is shown instead. "
            "Use an object of type image",
        )
        return (tree.LiteralText(f"[{token.content}]"),) if token.content else ()


def _paragraph(line: list[Inline]) -> Blocks:
    """Return the paragraph before or after a formula, without surrounding space."""
    if line and isinstance(line[0], tree.LiteralText):
        line[0] = tree.LiteralText(line[0].text.lstrip())
    if line and isinstance(line[-1], tree.LiteralText):
        line[-1] = tree.LiteralText(line[-1].text.rstrip())
    while line and line[0] in (tree.Break(), tree.LiteralText("")):
        line.pop(0)
    while line and line[-1] in (tree.Break(), tree.LiteralText("")):
        line.pop()
    return (tree.Paragraph(tuple(line)),) if line else ()


def _alignment(token: Token) -> Alignment:
    found = _ALIGNED.search(str(token.attrs.get("style", "")))
    return found[1] if found else "left"  # type: ignore[return-value]
