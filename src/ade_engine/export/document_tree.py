"""The tree of a document, from which PDF and HTML are written.

```
DocumentTree ─ Item ─ Block ─┬─ Paragraph, Heading, TableBlock ─ Inline
                             ├─ ListBlock, QuoteBlock, NotesBlock ─ Block
                             └─ CodeBlock, OutputBlock, FormulaBlock, ImageBlock, Rule
```

All texts in it are literal: markup of Markdown, HTML or Typst has no meaning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ade_engine.export.images import Image

Alignment = Literal["left", "center", "right"]
Stream = Literal["stdout", "stderr", "result", "error"]


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Styled:
    """Inlines in a style."""

    style: Literal["emphasis", "strong", "strike"]
    inlines: "Inlines"


@dataclass(frozen=True, slots=True)
class Code:
    """Code in a line of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a web or mail address that was checked before."""

    url: str
    inlines: "Inlines"


@dataclass(frozen=True, slots=True)
class InlineFormula:
    """A formula in a line of text."""

    latex: str


@dataclass(frozen=True, slots=True)
class Break:
    """A line break."""


Inline: TypeAlias = LiteralText | Styled | Code | Link | InlineFormula | Break
Inlines: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    inlines: Inlines


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a section; levels go from 1, the highest, to 6."""

    level: int
    inlines: Inlines


@dataclass(frozen=True, slots=True)
class ListBlock:
    """A list; with a `start` its items are numbered from there."""

    items: tuple["Blocks", ...]
    start: int | None


@dataclass(frozen=True, slots=True)
class QuoteBlock:
    """A quotation."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines of code."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """What code printed, returned or failed with."""

    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class FormulaBlock:
    """A formula on its own line."""

    latex: str


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table; each row has as many cells as there are columns."""

    columns: tuple[Inlines, ...]
    rows: tuple[tuple[Inlines, ...], ...]
    alignment: tuple[Alignment, ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image; `width_percent` is relative to the text width, None is the image's own size."""

    image: Image
    alt: str = ""
    caption: str = ""
    width_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal rule."""


@dataclass(frozen=True, slots=True)
class NotesBlock:
    """Speaker notes."""

    blocks: "Blocks"


Block: TypeAlias = (
    Paragraph
    | Heading
    | ListBlock
    | QuoteBlock
    | CodeBlock
    | OutputBlock
    | FormulaBlock
    | TableBlock
    | ImageBlock
    | Rule
    | NotesBlock
)
Blocks: TypeAlias = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the document; `slide` names the slide that it is assigned to."""

    name: str
    kind: str
    blocks: Blocks
    notes: Blocks = ()
    slide: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentTree:
    """A whole document."""

    title: str
    authors: tuple[str, ...]
    language: str
    items: tuple[Item, ...]


def text_of(inlines: Inlines) -> str:
    """Return the text of inlines without their styles."""
    return "".join(_texts(inlines))


def _texts(inlines: Inlines) -> Iterator[str]:
    for inline in inlines:
        match inline:
            case LiteralText(text) | Code(text) | InlineFormula(text):
                yield text
            case Styled(inlines=inner) | Link(inlines=inner):
                yield from _texts(inner)
            case Break():
                yield " "


def formulas_of(blocks: Blocks) -> Iterator[InlineFormula | FormulaBlock]:
    """Return the formulas of blocks, in lines and on their own, in their order."""
    for block in blocks:
        match block:
            case FormulaBlock():
                yield block
            case Paragraph(inlines=line) | Heading(inlines=line):
                yield from _inline_formulas(line)
            case ListBlock(items=items):
                for item in items:
                    yield from formulas_of(item)
            case QuoteBlock(blocks=inner) | NotesBlock(blocks=inner):
                yield from formulas_of(inner)
            case TableBlock(columns=columns, rows=rows):
                for row in (columns, *rows):
                    for cell in row:
                        yield from _inline_formulas(cell)


def _inline_formulas(inlines: Inlines) -> Iterator[InlineFormula]:
    for inline in inlines:
        match inline:
            case InlineFormula():
                yield inline
            case Styled(inlines=inner) | Link(inlines=inner):
                yield from _inline_formulas(inner)
