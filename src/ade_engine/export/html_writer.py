"""Write the tree of a document as one HTML file that loads nothing: no script, no font, no URL.

Every text is escaped. A Content-Security-Policy in the head also forbids the browser to load or run
anything; it allows the style sheet by its digest.
"""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib import resources

from ade_engine.export import document_tree as tree
from ade_engine.export.document_tree import (
    Block,
    Blocks,
    DocumentTree,
    ImageBlock,
    Inline,
    Inlines,
    TableBlock,
)
from ade_engine.export.formula_drawings import DrawnFormula, FormulaDrawings
from ade_engine.export.slides import Slide, has_cover, rows_of, slides_of

RIGHT_TO_LEFT = frozenset({"ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
STYLES = {"emphasis": "em", "strong": "strong", "strike": "s"}
UNTITLED = "Document"


def write_html(
    document: DocumentTree, formulas: FormulaDrawings, *, view_mode: str, notes: bool
) -> str:
    """Return the content of the HTML file."""
    writer = _Writer(formulas)
    if view_mode == "slide":
        body = writer.slides(document, notes=notes)
    else:
        body = writer.document(document, notes=notes)
    style = _style(view_mode) + writer.rules()
    return "".join(
        (
            "<!DOCTYPE html>\n",
            f'<html lang="{escape(document.language)}" dir="{_direction(document.language)}">\n',
            '<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{escape(document.title) or UNTITLED}</title>\n",
            f"<style>{style}</style>\n</head>\n",
            f'<body class="{escape(view_mode)}">\n{writer.drawings()}{body}</body>\n</html>\n',
        )
    )


def _style(view_mode: str) -> str:
    names = ("page.css", "slides.css") if view_mode == "slide" else ("page.css",)
    folder = resources.files(__package__).joinpath("templates")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _direction(language: str) -> str:
    return "rtl" if language.partition("-")[0].lower() in RIGHT_TO_LEFT else "ltr"


class _Writer:
    """Write blocks; collect the drawings and the lengths that they use.

    A formula is drawn once and referenced wherever it appears. Lengths become rules of the style
    sheet, because the policy allows no `style` attributes.
    """

    def __init__(self, formulas: FormulaDrawings) -> None:
        self._formulas = formulas
        self._drawings: dict[str, str] = {}
        self._lengths: dict[str, str] = {}
        self._level_shift = 0

    def drawings(self) -> str:
        """Return a hidden element with the drawings of the formulas."""
        symbols = "".join(f'<g id="{name}">{it}</g>' for it, name in self._drawings.items())
        hidden = 'class="drawings" width="0" height="0" aria-hidden="true"'
        return f"<svg {hidden}><defs>{symbols}</defs></svg>\n" if symbols else ""

    def rules(self) -> str:
        """Return the style rules for the lengths that were used."""
        return "".join(f".{name}{{{rule}}}" for rule, name in self._lengths.items())

    def document(self, document: DocumentTree, *, notes: bool) -> str:
        """Write an article."""
        # The title, if there is one, is the only heading of level 1 on the page.
        self._level_shift = 1 if document.title else 0
        items = "".join(
            f'<section data-object="{escape(item.name)}" class="{escape(item.kind)}">\n'
            f"{self._blocks(item.blocks)}{self._notes(item.notes) if notes else ''}</section>\n"
            for item in document.items
        )
        return f"<main>\n<article>\n{self._head(document)}{items}</article>\n</main>\n"

    def slides(self, document: DocumentTree, *, notes: bool) -> str:
        """Write a section per slide; a slide with much content is higher."""
        slides = slides_of(document)
        cover = has_cover(document, slides)
        written = (
            [f'<section class="slide cover">{self._head(document)}</section>\n'] if cover else []
        )
        for number, slide in enumerate(slides, start=2 if cover else 1):
            written.append(self._slide(slide, number))
            if notes and slide.notes:
                written.append(self._notes(slide.notes))
        return f"<main>\n{''.join(written)}</main>\n"

    def _slide(self, slide: Slide, number: int) -> str:
        title = "" if slide.title is None else f"<h2>{self._line(slide.title.inlines)}</h2>\n"
        form = " cover" if title and not slide.body else " centred" if slide.is_centred else ""
        self._level_shift = 1
        return (
            f'<section class="slide{form}" id="slide-{number}">\n'
            f'{title}<div class="body">\n{"".join(map(self._beside, rows_of(slide.body)))}</div>\n'
            f'<p class="number">{number}</p></section>\n'
        )

    def _beside(self, row: Blocks) -> str:
        shown = self._blocks(row)
        return shown if len(row) == 1 else f'<div class="row">\n{shown}</div>\n'

    def _head(self, document: DocumentTree) -> str:
        if not document.title:
            return ""
        authors = escape(", ".join(document.authors))
        by = f'<p class="authors">{authors}</p>\n' if authors else ""
        return f"<header>\n<h1>{escape(document.title)}</h1>\n{by}</header>\n"

    def _notes(self, blocks: Blocks) -> str:
        return f'<aside class="notes">\n{self._blocks(blocks)}</aside>\n' if blocks else ""

    def _line(self, inlines: Inlines) -> str:
        return "".join(map(self._inline, inlines))

    def _inline(self, inline: Inline) -> str:
        match inline:
            case tree.LiteralText(text):
                return escape(text, quote=False)
            case tree.Styled(style, inner):
                tag = STYLES[style]
                return f"<{tag}>{self._line(inner)}</{tag}>"
            case tree.Code(text):
                return f"<code>{escape(text, quote=False)}</code>"
            case tree.Link(url, inner):
                return f'<a href="{escape(url)}" rel="noopener noreferrer">{self._line(inner)}</a>'
            case tree.InlineFormula():
                return self._math(inline)
            case tree.Break():
                return "<br>\n"

    def _math(self, formula: tree.InlineFormula) -> str:
        drawn = self._formulas.of(formula)
        if drawn is None:
            return f"<code>{escape(formula.latex, quote=False)}</code>"
        lowered = self._length(f"vertical-align:{-drawn.below:.2f}em")
        return self._drawing(drawn, f"math {lowered}")

    def _formula(self, formula: tree.FormulaBlock) -> str:
        drawn = self._formulas.of(formula)
        if drawn is None:
            return f'<pre class="source"><code>{escape(formula.latex, quote=False)}</code></pre>\n'
        return f'<div class="formula">{self._drawing(drawn, "math")}</div>\n'

    def _drawing(self, drawn: DrawnFormula, css_class: str) -> str:
        name = self._drawings.setdefault(drawn.shapes, f"f{len(self._drawings)}")
        return (
            f'<svg class="{css_class}" role="img" aria-label="{escape(drawn.latex)}" '
            f'viewBox="{drawn.view}" width="{drawn.width:g}em" height="{drawn.height:g}em">'
            f'<use href="#{name}"/></svg>'
        )

    def _length(self, rule: str) -> str:
        return self._lengths.setdefault(rule, f"l{len(self._lengths)}")

    def _blocks(self, blocks: Iterable[Block]) -> str:
        return "".join(map(self._block, blocks))

    def _block(self, block: Block) -> str:
        match block:
            case tree.Paragraph(line):
                return f"<p>{self._line(line)}</p>\n"
            case tree.Heading(level, line):
                tag = f"h{min(6, level + self._level_shift)}"
                return f"<{tag}>{self._line(line)}</{tag}>\n"
            case tree.ListBlock():
                return self._list(block)
            case tree.QuoteBlock(inner):
                return f"<blockquote>\n{self._blocks(inner)}</blockquote>\n"
            case tree.NotesBlock(inner):
                return self._notes(inner)
            case tree.CodeBlock(text, _):
                return f"<pre><code>{escape(text, quote=False)}</code></pre>\n"
            case tree.OutputBlock(stream, text):
                return (
                    f'<div class="output {stream}"><p class="stream">{stream}</p>'
                    f"<pre><samp>{escape(text, quote=False)}</samp></pre></div>\n"
                )
            case tree.FormulaBlock():
                return self._formula(block)
            case TableBlock():
                return self._table(block)
            case ImageBlock():
                return self._image(block)
            case tree.Rule():
                return "<hr>\n"

    def _list(self, block: tree.ListBlock) -> str:
        items = "".join(f"<li>{self._item(item)}</li>\n" for item in block.items)
        if block.start is None:
            return f"<ul>\n{items}</ul>\n"
        start = "" if block.start == 1 else f' start="{block.start}"'
        return f"<ol{start}>\n{items}</ol>\n"

    def _item(self, blocks: Blocks) -> str:
        """Write a list item; a paragraph at its start gets no separate element."""
        if blocks and isinstance(blocks[0], tree.Paragraph):
            rest = self._blocks(blocks[1:])
            return f"{self._line(blocks[0].inlines)}{rest and chr(10)}{rest}"
        return self._blocks(blocks)

    def _table(self, table: TableBlock) -> str:
        head = self._row(table, table.columns, 'th scope="col"', "th")
        rows = "".join(self._row(table, row, "td", "td") for row in table.rows)
        caption = f"<caption>{escape(table.caption)}</caption>\n" if table.caption else ""
        # Focusable, so that a table wider than the page can be scrolled by keyboard.
        return (
            f'<div class="table" tabindex="0"><table>\n{caption}<thead>{head}</thead>\n'
            f"<tbody>\n{rows}</tbody>\n</table></div>\n"
        )

    def _row(self, table: TableBlock, row: tuple[Inlines, ...], opened: str, tag: str) -> str:
        cells = "".join(
            f'<{opened} class="{side}">{self._line(cell)}</{tag}>'
            for cell, side in zip(row, table.alignment, strict=True)
        )
        return f"<tr>{cells}</tr>\n"

    def _image(self, block: ImageBlock) -> str:
        image = block.image
        data = base64.b64encode(image.path.read_bytes()).decode()
        sized = ""
        if block.width_percent is not None:
            sized = f' class="{self._length(f"width:{block.width_percent}%")}"'
        shown = (
            f'<img src="data:{image.media_type};base64,{data}" alt="{escape(block.alt)}" '
            f'width="{image.width_pixels}" height="{image.height_pixels}"{sized}>'
        )
        caption = f"<figcaption>{escape(block.caption)}</figcaption>" if block.caption else ""
        return f"<figure>{shown}{caption}</figure>\n"
