"""Write the tree of a document as the JSON data that the Typst templates read.

No text of a document becomes Typst source: the templates are fixed and receive all untrusted text
as JSON strings, which Typst sets literally.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from ade_engine.export import document_tree as tree
from ade_engine.export.characters import (
    CELL_WORD_CHARS_MAX,
    CODE_WORD_CHARS_MAX,
    WORD_CHARS_MAX,
    breakable,
)
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
from ade_engine.export.images import Image, typst_format
from ade_engine.export.slides import Slide, has_cover, rows_of, slides_of

INK = "#1a1d21"
# The math font looks larger than the text font at the same size.
FORMULA_SCALE = 0.93
# Syntax colouring costs about 10 ms for 1,000 characters, and a long block costs more than linear
# time. So long code has no colours and is typeset in parts.
COLOURED_CHARS_MAX = 20_000
PART_LINES = 100
CODE_LANGUAGE_CHARS_MAX = 40
# The running title in the margin of each page has one line.
RUNNING_TITLE_CHARS_MAX = 90
# The estimated width of a letter and the width of a line, to find out which tables are too wide.
# These get smaller text, down to about 6 points on pages and 8 on slides.
LETTER_EM = 0.5
LINE_EM, SLIDE_LINE_EM = 44.0, 36.0
CELL_PADDING_EM = 1.2
CELL_EM_MAX = 25.0
TABLE_SCALE_MIN, SLIDE_TABLE_SCALE_MIN = 0.6, 0.45
# About five letters; in narrower columns most words are broken.
NARROW_COLUMN_EM = 2.5
# A single object gets its own width, up to that of a page. Typst measures it in time that grows
# with the square of the longest line, so lines longer than this are not measured: they fill the
# page.
MEASURED_LINE_CHARS_MAX = 300
Node: TypeAlias = dict[str, Any]


class TypstData:
    """Write data for the templates; collect the drawings, images and characters that it uses."""

    def __init__(self, formulas: FormulaDrawings) -> None:
        self.characters: set[str] = set()
        self.images: list[Image] = []
        self.narrow_tables = 0
        self._formulas = formulas
        self._drawings: dict[str, int] = {}
        self._line_chars_most = 0
        self._line_em, self._table_scale_min = LINE_EM, TABLE_SCALE_MIN

    def document(self, document: DocumentTree, *, notes: bool) -> Node:
        """Return the data of a document on running pages."""
        items = [
            self._blocks(
                (*item.blocks, tree.NotesBlock(item.notes)) if notes and item.notes else item.blocks
            )
            for item in document.items
        ]
        return self._head(document) | {"items": items, "drawings": list(self._drawings)}

    def slides(self, document: DocumentTree, *, notes: bool) -> Node:
        """Return the data of a document on slides."""
        slides = slides_of(document)
        self._line_em, self._table_scale_min = SLIDE_LINE_EM, SLIDE_TABLE_SCALE_MIN
        return self._head(document) | {
            "cover": has_cover(document, slides),
            "slides": [self._slide(slide, notes=notes) for slide in slides],
            "drawings": list(self._drawings),
        }

    def object(self, blocks: Blocks) -> Node:
        """Return the data of a single object."""
        return {
            "blocks": self._blocks(blocks),
            "drawings": list(self._drawings),
            "measured": self._line_chars_most <= MEASURED_LINE_CHARS_MAX,
        }

    def _head(self, document: DocumentTree) -> Node:
        language, _, region = document.language.partition("-")
        return {
            "title": self._text(document.title),
            "running_title": _shortened(document.title),
            "authors": [self._text(author) for author in document.authors],
            "language": language.lower(),
            "region": region.upper() or None,
        }

    def _slide(self, slide: Slide, *, notes: bool) -> Node:
        return {
            "title": None if slide.title is None else self._line(slide.title.inlines),
            "body": (body := [self._row(row) for row in rows_of(slide.body)]),
            "pictures": sum(node["k"] in {"picture", "row"} for node in body),
            "centred": slide.is_centred,
            "notes": self._blocks(slide.notes) if notes else [],
        }

    def _row(self, row: Blocks) -> Node:
        """Write one row of a slide; several images stand side by side."""
        if len(row) == 1:
            return self._block(row[0])
        return {"k": "row", "pictures": self._blocks(row)}

    def _text(self, text: str, word_chars_max: int = WORD_CHARS_MAX) -> str:
        self.characters.update(text)
        return breakable(text, word_chars_max)

    def _parts(self, text: str, lines_max: int) -> list[str]:
        lines = self._text(text, CODE_WORD_CHARS_MAX).split("\n")
        self._line_chars_most = max(self._line_chars_most, *map(len, lines))
        step = max(lines_max, 1)
        return ["\n".join(lines[at : at + step]) for at in range(0, len(lines), step)]

    def _line(self, inlines: Inlines, word_chars_max: int = WORD_CHARS_MAX) -> list[Node]:
        self._line_chars_most = max(self._line_chars_most, _longest_line_chars(inlines))
        return [self._inline(inline, word_chars_max) for inline in inlines]

    def _inline(self, inline: Inline, word_chars_max: int) -> Node:
        match inline:
            case tree.LiteralText(text):
                return {"k": "text", "text": self._text(text, word_chars_max)}
            case tree.Styled(style, inner):
                return {"k": style, "line": self._line(inner, word_chars_max)}
            case tree.Code(text):
                return {"k": "code", "text": self._text(text, word_chars_max)}
            case tree.Link(url, inner):
                return {"k": "link", "url": url, "line": self._line(inner, word_chars_max)}
            case tree.InlineFormula():
                return self._drawing(inline, "math")
            case tree.Break():
                return {"k": "break"}

    def _drawing(self, formula: tree.InlineFormula | tree.FormulaBlock, kind: str) -> Node:
        drawn = self._formulas.of(formula)
        if drawn is None:
            if kind == "math":
                return {"k": "code", "text": self._text(formula.latex)}
            return {
                "k": "lines",
                "language": "latex",
                "parts": self._parts(formula.latex, PART_LINES),
            }
        at = self._drawings.setdefault(_with_ink(drawn), len(self._drawings))
        return {
            "k": kind,
            "at": at,
            "latex": drawn.latex,
            "width": round(drawn.width * FORMULA_SCALE, 3),
            "height": round(drawn.height * FORMULA_SCALE, 3),
            "below": round(drawn.below * FORMULA_SCALE, 3),
        }

    def _blocks(self, blocks: Iterable[Block]) -> list[Node]:
        return [self._block(block) for block in blocks]

    def _block(self, block: Block) -> Node:
        match block:
            case tree.Paragraph(line):
                return {"k": "paragraph", "line": self._line(line)}
            case tree.Heading(level, line):
                return {"k": "heading", "level": level, "line": self._line(line)}
            case tree.ListBlock(items, start):
                return {
                    "k": "list",
                    "start": start,
                    "tight": all(map(_is_tight, items)),
                    "items": [self._blocks(item) for item in items],
                }
            case tree.QuoteBlock(inner):
                return {"k": "quote", "blocks": self._blocks(inner)}
            case tree.NotesBlock(inner):
                return {"k": "notes", "blocks": self._blocks(inner)}
            case tree.CodeBlock(text, language):
                coloured = len(text) <= COLOURED_CHARS_MAX
                named = language[:CODE_LANGUAGE_CHARS_MAX] or None
                parts = self._parts(text, PART_LINES if not coloured else len(text))
                return {"k": "lines", "language": named if coloured else None, "parts": parts}
            case tree.OutputBlock(stream, text):
                return {"k": "output", "stream": stream, "parts": self._parts(text, PART_LINES)}
            case tree.FormulaBlock():
                return self._drawing(block, "formula")
            case tree.TableBlock():
                return self._table(block)
            case ImageBlock():
                return self._image(block)
            case tree.Rule():
                return {"k": "rule"}

    def _image(self, block: ImageBlock) -> Node:
        self.images.append(block.image)
        return {
            "k": "picture",
            "path": f"/{block.image.path.as_posix()}",
            "format": typst_format(block.image),
            "alt": block.alt or block.caption or None,
            "caption": self._text(block.caption) or None,
            "width": block.width_percent,
        }

    def _table(self, table: TableBlock) -> Node:
        """Write a table; one that is too wide gets smaller text and fixed column widths."""
        widths = _preferred_widths(table)
        scale = min(1.0, max(self._table_scale_min, self._line_em / sum(widths)))
        fits = sum(widths) * scale <= self._line_em
        room = self._line_em / scale / max(len(widths), 1) - CELL_PADDING_EM
        self.narrow_tables += not fits and room < NARROW_COLUMN_EM
        word_chars_max = CELL_WORD_CHARS_MAX if fits else max(2, int(room / LETTER_EM))
        return {
            "k": "table",
            "shares": None if fits else [round(width, 2) for width in widths],
            "scale": round(scale, 3),
            "alignment": list(table.alignment),
            "columns": [self._line(cell, word_chars_max) for cell in table.columns],
            "cells": [self._line(cell, word_chars_max) for row in table.rows for cell in row],
            "caption": self._text(table.caption) or None,
        }


def _longest_line_chars(inlines: Inlines) -> int:
    longest = chars = 0
    for inline in inlines:
        chars = 0 if isinstance(inline, tree.Break) else chars + len(tree.text_of((inline,)))
        longest = max(longest, chars)
    return longest


def _shortened(title: str) -> str:
    if len(title) <= RUNNING_TITLE_CHARS_MAX:
        return title
    return title[: RUNNING_TITLE_CHARS_MAX - 1].rstrip() + "…"


def _with_ink(drawn: DrawnFormula) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{drawn.view}">'
        f"{drawn.shapes.replace('currentColor', INK)}</svg>"
    )


def _is_tight(item: Blocks) -> bool:
    return (
        all(isinstance(block, tree.Paragraph | tree.ListBlock) for block in item[:2])
        and len(item) < 3
    )


def _preferred_widths(table: TableBlock) -> list[float]:
    """Estimate the preferred width of each column in em, up to a limit."""
    return [
        CELL_PADDING_EM
        + min(CELL_EM_MAX, LETTER_EM * max(len(tree.text_of(row[at])) for row in cells))
        for cells in [(table.columns, *table.rows)]
        for at in range(len(table.columns))
    ]
