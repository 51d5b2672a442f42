"""Write the tree as one file of HTML that needs nothing else: no script, no font, no address.

Every text is escaped. The policy in its head forbids the browser what the file does without anyway;
the style sheet is allowed by its digest.
"""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib import resources

from ade_engine.export import document_tree as tree
from ade_engine.export.document_tree import Block, Blocks, Document, Inline, Inlines, Picture, Table
from ade_engine.export.formula_drawings import Drawn, Formulas
from ade_engine.export.slides import Slide, has_cover, rows_of, slides_of

RIGHT_TO_LEFT = frozenset({"ar", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
STYLES = {"emphasis": "em", "strong": "strong", "strike": "s"}
UNTITLED = "Document"


def write_html(document: Document, formulas: Formulas, *, view_mode: str, notes: bool) -> str:
    """Return the file."""
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
    """Write blocks; remember the drawings and the lengths that they use.

    A formula is drawn once, wherever it stands. Lengths are rules of the style sheet: the policy
    allows no style in an element.
    """

    def __init__(self, formulas: Formulas) -> None:
        self._formulas = formulas
        self._drawings: dict[str, str] = {}
        self._lengths: dict[str, str] = {}
        self._level_shift = 0

    def drawings(self) -> str:
        """Return what formulas look like; it is not seen where it stands."""
        symbols = "".join(f'<g id="{name}">{it}</g>' for it, name in self._drawings.items())
        hidden = 'class="drawings" width="0" height="0" aria-hidden="true"'
        return f"<svg {hidden}><defs>{symbols}</defs></svg>\n" if symbols else ""

    def rules(self) -> str:
        """Return the rules for the lengths that were used."""
        return "".join(f".{name}{{{rule}}}" for rule, name in self._lengths.items())

    def document(self, document: Document, *, notes: bool) -> str:
        """Write an article."""
        # The title is the page's only heading of the first level, if there is one.
        self._level_shift = 1 if document.title else 0
        items = "".join(
            f'<section data-object="{escape(item.name)}" class="{escape(item.kind)}">\n'
            f"{self._blocks(item.blocks)}{self._notes(item.notes) if notes else ''}</section>\n"
            for item in document.items
        )
        return f"<main>\n<article>\n{self._head(document)}{items}</article>\n</main>\n"

    def slides(self, document: Document, *, notes: bool) -> str:
        """Write sections of the form of slides; one that holds more is higher."""
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
        form = (
            " cover" if title and not slide.body else " centred" if slide.shows_only_things else ""
        )
        self._level_shift = 1
        return (
            f'<section class="slide{form}" id="slide-{number}">\n'
            f'{title}<div class="body">\n{"".join(map(self._beside, rows_of(slide.body)))}</div>\n'
            f'<p class="number">{number}</p></section>\n'
        )

    def _beside(self, row: Blocks) -> str:
        shown = self._blocks(row)
        return shown if len(row) == 1 else f'<div class="row">\n{shown}</div>\n'

    def _head(self, document: Document) -> str:
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
            case tree.Text(text):
                return escape(text, quote=False)
            case tree.Styled(style, inner):
                tag = STYLES[style]
                return f"<{tag}>{self._line(inner)}</{tag}>"
            case tree.Code(text):
                return f"<code>{escape(text, quote=False)}</code>"
            case tree.Link(url, inner):
                return f'<a href="{escape(url)}" rel="noopener noreferrer">{self._line(inner)}</a>'
            case tree.Math():
                return self._math(inline)
            case tree.Break():
                return "<br>\n"

    def _math(self, formula: tree.Math) -> str:
        drawn = self._formulas.of(formula)
        if drawn is None:
            return f"<code>{escape(formula.latex, quote=False)}</code>"
        lowered = self._length(f"vertical-align:{-drawn.below:.2f}em")
        return self._drawing(drawn, f"math {lowered}")

    def _formula(self, formula: tree.Formula) -> str:
        drawn = self._formulas.of(formula)
        if drawn is None:
            return f'<pre class="source"><code>{escape(formula.latex, quote=False)}</code></pre>\n'
        return f'<div class="formula">{self._drawing(drawn, "math")}</div>\n'

    def _drawing(self, drawn: Drawn, css_class: str) -> str:
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
            case tree.List():
                return self._list(block)
            case tree.Quote(inner):
                return f"<blockquote>\n{self._blocks(inner)}</blockquote>\n"
            case tree.Notes(inner):
                return self._notes(inner)
            case tree.CodeBlock(text, _):
                return f"<pre><code>{escape(text, quote=False)}</code></pre>\n"
            case tree.Output(stream, text):
                return (
                    f'<div class="output {stream}"><p class="stream">{stream}</p>'
                    f"<pre><samp>{escape(text, quote=False)}</samp></pre></div>\n"
                )
            case tree.Formula():
                return self._formula(block)
            case Table():
                return self._table(block)
            case Picture():
                return self._picture(block)
            case tree.Rule():
                return "<hr>\n"

    def _list(self, block: tree.List) -> str:
        items = "".join(f"<li>{self._item(item)}</li>\n" for item in block.items)
        if block.start is None:
            return f"<ul>\n{items}</ul>\n"
        start = "" if block.start == 1 else f' start="{block.start}"'
        return f"<ol{start}>\n{items}</ol>\n"

    def _item(self, blocks: Blocks) -> str:
        """Write an item; a paragraph that begins it needs no element of its own."""
        if blocks and isinstance(blocks[0], tree.Paragraph):
            rest = self._blocks(blocks[1:])
            return f"{self._line(blocks[0].inlines)}{rest and chr(10)}{rest}"
        return self._blocks(blocks)

    def _table(self, table: Table) -> str:
        head = self._row(table, table.columns, 'th scope="col"', "th")
        rows = "".join(self._row(table, row, "td", "td") for row in table.rows)
        caption = f"<caption>{escape(table.caption)}</caption>\n" if table.caption else ""
        # Reached by keyboard: what is wider than the page is moved in its own frame.
        return (
            f'<div class="table" tabindex="0"><table>\n{caption}<thead>{head}</thead>\n'
            f"<tbody>\n{rows}</tbody>\n</table></div>\n"
        )

    def _row(self, table: Table, row: tuple[Inlines, ...], opened: str, tag: str) -> str:
        cells = "".join(
            f'<{opened} class="{side}">{self._line(cell)}</{tag}>'
            for cell, side in zip(row, table.alignment, strict=True)
        )
        return f"<tr>{cells}</tr>\n"

    def _picture(self, picture: Picture) -> str:
        image = picture.image
        data = base64.b64encode(image.path.read_bytes()).decode()
        sized = ""
        if picture.width_percent is not None:
            sized = f' class="{self._length(f"width:{picture.width_percent}%")}"'
        shown = (
            f'<img src="data:{image.media_type};base64,{data}" alt="{escape(picture.alt)}" '
            f'width="{image.width_pixels}" height="{image.height_pixels}"{sized}>'
        )
        caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
        return f"<figure>{shown}{caption}</figure>\n"
