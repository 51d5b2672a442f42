"""A document as it is exported: what every writer writes, whatever it was made from.

```
Document ─ Item ─ Block ─┬─ Paragraph, Heading, Table ─ Inline
                         ├─ List, Quote ─ Block
                         └─ CodeBlock, Output, Formula, Picture, Rule, Notes
```

Texts in it are plain: no markup of Markdown, HTML or Typst has a meaning any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ade_engine.export.images import Image

Alignment = Literal["left", "center", "right"]
Stream = Literal["stdout", "stderr", "result", "error"]


@dataclass(frozen=True, slots=True)
class Text:
    """Hold characters that mean themselves."""

    text: str


@dataclass(frozen=True, slots=True)
class Styled:
    """Set what it holds apart."""

    style: Literal["emphasis", "strong", "strike"]
    inlines: "Inlines"


@dataclass(frozen=True, slots=True)
class Code:
    """Hold characters of code in a line of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Lead to an address of the web or of mail, checked before."""

    url: str
    inlines: "Inlines"


@dataclass(frozen=True, slots=True)
class Math:
    """Hold a formula in a line of text."""

    latex: str


@dataclass(frozen=True, slots=True)
class Break:
    """Begin a new line."""


Inline: TypeAlias = Text | Styled | Code | Link | Math | Break
Inlines: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Hold running text."""

    inlines: Inlines


@dataclass(frozen=True, slots=True)
class Heading:
    """Begin a section; level 1 is the highest of 6."""

    level: int
    inlines: Inlines


@dataclass(frozen=True, slots=True)
class List:
    """Hold items; with a `start` they are numbered from there."""

    items: tuple["Blocks", ...]
    start: int | None


@dataclass(frozen=True, slots=True)
class Quote:
    """Hold what somebody else said."""

    blocks: "Blocks"


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Hold lines of code."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Output:
    """Hold what code wrote, gave or failed with."""

    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Formula:
    """Hold a formula on a line of its own."""

    latex: str


@dataclass(frozen=True, slots=True)
class Table:
    """Hold rows of as many cells as there are columns."""

    columns: tuple[Inlines, ...]
    rows: tuple[tuple[Inlines, ...], ...]
    alignment: tuple[Alignment, ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Show an image; `width_percent` is of the text's width, without it the image's own size."""

    image: Image
    alt: str = ""
    caption: str = ""
    width_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Part what comes before from what comes after."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Hold what only the speaker is to see."""

    blocks: "Blocks"


Block: TypeAlias = (
    Paragraph
    | Heading
    | List
    | Quote
    | CodeBlock
    | Output
    | Formula
    | Table
    | Picture
    | Rule
    | Notes
)
Blocks: TypeAlias = tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """Hold one object of the document; `slide` names the slide that it was put on."""

    name: str
    kind: str
    blocks: Blocks
    notes: Blocks = ()
    slide: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Hold all that is exported."""

    title: str
    authors: tuple[str, ...]
    language: str
    items: tuple[Item, ...]


def text_of(inlines: Inlines) -> str:
    """Return the characters of a line of text, without its styles."""
    return "".join(_texts(inlines))


def _texts(inlines: Inlines) -> Iterator[str]:
    for inline in inlines:
        match inline:
            case Text(text) | Code(text) | Math(text):
                yield text
            case Styled(inlines=inner) | Link(inlines=inner):
                yield from _texts(inner)
            case Break():
                yield " "


def formulas_of(blocks: Blocks) -> Iterator[Math | Formula]:
    """Return the formulas of some blocks, in lines and on their own, in their order."""
    for block in blocks:
        match block:
            case Formula():
                yield block
            case Paragraph(inlines=line) | Heading(inlines=line):
                yield from _math(line)
            case List(items=items):
                for item in items:
                    yield from formulas_of(item)
            case Quote(blocks=inner) | Notes(blocks=inner):
                yield from formulas_of(inner)
            case Table(columns=columns, rows=rows):
                for row in (columns, *rows):
                    for cell in row:
                        yield from _math(cell)


def _math(inlines: Inlines) -> Iterator[Math]:
    for inline in inlines:
        match inline:
            case Math():
                yield inline
            case Styled(inlines=inner) | Link(inlines=inner):
                yield from _math(inner)
