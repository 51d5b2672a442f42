"""Put the objects of a document on slides.

Neighbours with the same `slide` share one. Among those without, a text that begins with a heading
of level 1 or 2 begins a slide; where no text does, each object has a slide of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ade_engine.export.document_tree import (
    Blocks,
    Document,
    Formula,
    Heading,
    Item,
    Picture,
    Table,
    text_of,
)

TITLE_LEVEL_MAX = 2
ROW_IMAGES_MAX = 3


@dataclass(frozen=True, slots=True)
class Slide:
    """Hold what one page shows; its first heading stands at the top."""

    title: Heading | None
    items: tuple[Item, ...]

    @property
    def body(self) -> Blocks:
        """Return what stands below the title."""
        blocks = tuple(block for item in self.items for block in item.blocks)
        return blocks[1:] if self.title is not None else blocks

    @property
    def notes(self) -> Blocks:
        """Return what the speaker is to see."""
        return tuple(block for item in self.items for block in item.notes)

    @property
    def shows_only_things(self) -> bool:
        """Tell whether it has no running text: then it looks best in the middle."""
        return bool(self.body) and all(
            isinstance(block, Formula | Picture | Table) for block in self.body
        )


def slides_of(document: Document) -> list[Slide]:
    """Return the slides in their order; there is at least one."""
    slides = [
        Slide(_title(group), tuple(group))
        for slide, run in groupby(document.items, key=lambda item: item.slide)
        for group in (_by_headings(list(run)) if slide is None else [list(run)])
    ]
    return slides or [Slide(None, ())]


def has_cover(document: Document, slides: list[Slide]) -> bool:
    """Tell whether the title gets a slide of its own: not if the first slide has it already."""
    first = slides[0].title
    same = first is not None and text_of(first.inlines).casefold() == document.title.casefold()
    return bool(document.title) and not same


def rows_of(blocks: Blocks) -> list[Blocks]:
    """Put neighbouring images side by side; all else has a row of its own."""
    rows: list[Blocks] = []
    for block in blocks:
        beside = isinstance(block, Picture) and rows and isinstance(rows[-1][0], Picture)
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
