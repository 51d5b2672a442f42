"""Draw the formulas of a document, each once."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ade_engine.export.document_tree import Document, Formula, Math, formulas_of
from ade_engine.export.export_warnings import Warnings
from ade_engine.render import RenderError, formula_svg
from ade_engine.render.latex import CHARS_MAX

FORMULAS_MAX = 2_000
# Drawn at this size and told in multiples of it: letters of a formula are as high as those around.
EM_PIXELS = 16.0
_TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)
_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW = re.compile(r'viewBox="([^"<>]*)"')


@dataclass(frozen=True, slots=True)
class Drawn:
    """Hold a formula as SVG in the colour of the text around it; its measures are in em.

    `shapes` is what the SVG holds, `view` its box of coordinates.
    """

    latex: str
    shapes: str
    view: str
    width: float
    height: float
    below: float


class Formulas:
    """Find the drawing of a formula; one that could not be drawn has none."""

    def __init__(self, drawn: dict[Math | Formula, Drawn]) -> None:
        self._drawn = drawn

    def of(self, formula: Math | Formula) -> Drawn | None:
        """Return the drawing, or None: then its source is to be shown."""
        return self._drawn.get(formula)


def draw_all(
    document: Document, warnings: Warnings, progress: Callable[[int, int], None]
) -> Formulas:
    """Draw every formula; what cannot be drawn is a warning."""
    first_seen: dict[Math | Formula, str] = {}
    for name, formula in _formulas(document):
        first_seen.setdefault(formula, name)
    drawn: dict[Math | Formula, Drawn] = {}
    for number, (formula, name) in enumerate(first_seen.items()):
        progress(number, len(first_seen))
        try:
            if number >= FORMULAS_MAX or len(formula.latex) > CHARS_MAX:
                raise RenderError(
                    f"There can be {FORMULAS_MAX:,} formulas of {CHARS_MAX:,} characters"
                )
            drawn[formula] = _draw(formula)
        except RenderError as error:
            message = f"A formula could not be drawn, its source is shown: {error}"
            warnings.add("formula_not_drawn", message, name)
    return Formulas(drawn)


def _formulas(document: Document) -> Iterator[tuple[str, Math | Formula]]:
    for item in document.items:
        for formula in formulas_of((*item.blocks, *item.notes)):
            yield item.name, formula


def _draw(formula: Math | Formula) -> Drawn:
    picture = formula_svg(
        formula.latex, display=isinstance(formula, Formula), size=EM_PIXELS, color=None
    )
    opening, view = _OPENING.match(picture.svg), _VIEW.search(picture.svg)
    assert opening is not None
    assert view is not None
    inside = picture.svg[opening.end() :].removesuffix("</svg>")
    return Drawn(
        latex=formula.latex,
        shapes=_TITLE.sub("", inside),
        view=view[1],
        width=_em(picture.width),
        height=_em(picture.height),
        below=_em(picture.baseline),
    )


def _em(pixels: float) -> float:
    return round(pixels / EM_PIXELS, 3)
