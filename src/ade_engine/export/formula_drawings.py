"""Draw every distinct formula of a document once."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ade_engine.export.document_tree import DocumentTree, FormulaBlock, InlineFormula, formulas_of
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.render import RenderError, formula_svg
from ade_engine.render.latex import CHARS_MAX

FORMULAS_MAX = 2_000
# Formulas are drawn in this size and measured in em, so that they scale with the text around them.
EM_PIXELS = 16.0
_TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)
_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW = re.compile(r'viewBox="([^"<>]*)"')


@dataclass(frozen=True, slots=True)
class DrawnFormula:
    """A formula as SVG in the colour of the text around it; sizes are in em.

    `shapes` is the content of the SVG element, `view` its view box, `below` the depth below the
    baseline.
    """

    latex: str
    shapes: str
    view: str
    width: float
    height: float
    below: float


class FormulaDrawings:
    """The drawings of a document's formulas."""

    def __init__(self, drawn: dict[InlineFormula | FormulaBlock, DrawnFormula]) -> None:
        self._drawn = drawn

    def of(self, formula: InlineFormula | FormulaBlock) -> DrawnFormula | None:
        """Return the drawing, or None if there is none and the source is shown instead."""
        return self._drawn.get(formula)


def draw_formulas(
    document: DocumentTree,
    warnings: ExportWarnings,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> FormulaDrawings:
    """Draw every formula; one that cannot be drawn gives a warning."""
    first_seen: dict[InlineFormula | FormulaBlock, str] = {}
    for name, formula in _formulas(document):
        first_seen.setdefault(formula, name)
    drawn: dict[InlineFormula | FormulaBlock, DrawnFormula] = {}
    for number, (formula, name) in enumerate(first_seen.items()):
        progress(number, len(first_seen))
        try:
            if number >= FORMULAS_MAX or len(formula.latex) > CHARS_MAX:
                raise RenderError(
                    f"At most {FORMULAS_MAX:,} formulas of {CHARS_MAX:,} characters are drawn"
                )
            drawn[formula] = _draw(formula)
        except RenderError as error:
            message = f"A formula could not be drawn; its source is shown: {error}"
            warnings.add("formula_not_drawn", message, name)
    return FormulaDrawings(drawn)


def _formulas(document: DocumentTree) -> Iterator[tuple[str, InlineFormula | FormulaBlock]]:
    for item in document.items:
        for formula in formulas_of((*item.blocks, *item.notes)):
            yield item.name, formula


def _draw(formula: InlineFormula | FormulaBlock) -> DrawnFormula:
    drawing = formula_svg(
        formula.latex, display=isinstance(formula, FormulaBlock), size=EM_PIXELS, color=None
    )
    opening, view = _OPENING.match(drawing.svg), _VIEW.search(drawing.svg)
    assert opening is not None
    assert view is not None
    content = drawing.svg[opening.end() :].removesuffix("</svg>")
    return DrawnFormula(
        latex=formula.latex,
        shapes=_TITLE.sub("", content),
        view=view[1],
        width=_em(drawing.width),
        height=_em(drawing.height),
        below=_em(drawing.baseline),
    )


def _em(pixels: float) -> float:
    return round(pixels / EM_PIXELS, 3)
