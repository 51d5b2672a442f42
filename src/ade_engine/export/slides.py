"""Put the objects of a document on slides.

Adjacent objects with the same `slide` share one. Among objects without it, a text that starts with
a heading of level 1 or 2 starts a slide; if no text does, each object gets its own slide.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ade_engine.export.document_tree import (
    Blocks,
    DocumentTree,
    FormulaBlock,
    Heading,
    ImageBlock,
    Item,
    TableBlock,
    text_of,
)

TITLE_LEVEL_MAX = 2
ROW_IMAGES_MAX = 3


@dataclass(frozen=True, slots=True)
class Slide:
    """The objects on one slide; a heading at their start is the title."""

    title: Heading | None
    items: tuple[Item, ...]

    @property
    def body(self) -> Blocks:
        """Return the blocks below the title."""
        blocks = tuple(block for item in self.items for block in item.blocks)
        return blocks[1:] if self.title is not None else blocks

    @property
    def notes(self) -> Blocks:
        """Return the speaker notes."""
        return tuple(block for item in self.items for block in item.notes)

    @property
    def is_centred(self) -> bool:
        """Tell whether the content is centred: it has formulas, images and tables only."""
        return bool(self.body) and all(
            isinstance(block, FormulaBlock | ImageBlock | TableBlock) for block in self.body
        )


def slides_of(document: DocumentTree) -> list[Slide]:
    """Return the slides in order; there is at least one."""
    slides = [
        Slide(_title(group), tuple(group))
        for slide, run in groupby(document.items, key=lambda item: item.slide)
        for group in (_by_headings(list(run)) if slide is None else [list(run)])
    ]
    return slides or [Slide(None, ())]


def has_cover(document: DocumentTree, slides: list[Slide]) -> bool:
    """Tell whether the title gets its own slide, which it does unless the first slide has it."""
    first = slides[0].title
    same = first is not None and text_of(first.inlines).casefold() == document.title.casefold()
    return bool(document.title) and not same


def rows_of(blocks: Blocks) -> list[Blocks]:
    """Group adjacent images into rows; any other block gets its own row."""
    rows: list[Blocks] = []
    for block in blocks:
        beside = isinstance(block, ImageBlock) and rows and isinstance(rows[-1][0], ImageBlock)
        if beside and len(rows[-1]) < ROW_IMAGES_MAX:
            rows[-1] = (*rows[-1], block)
        else:
            rows.append((block,))
    return rows


def _by_headings(items: list[Item]) -> Iterator[list[Item]]:
    if not any(_title([item]) for item in items):
        yield from ([item] for item in items)
        return
    group: list[Item] = []
    for item in items:
        if group and _title([item]):
            yield group
            group = []
        group.append(item)
    yield group


def _title(items: list[Item]) -> Heading | None:
    blocks = items[0].blocks
    if blocks and isinstance(blocks[0], Heading) and blocks[0].level <= TITLE_LEVEL_MAX:
        return blocks[0]
    return None
