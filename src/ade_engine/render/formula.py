"""Draw a formula of LaTeX."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any
from xml.etree.ElementTree import Element

import ziamath
from ziamath.drawable import Glyph, HLine

from ade_engine.render import ziamath_patches
from ade_engine.render.color import css_color
from ade_engine.render.latex import place
from ade_engine.render.mathml import mathml
from ade_engine.render.render_errors import BadFormula
from ade_engine.render.safe_svg import Drawing, clean

assert ziamath_patches  # how rows, tables and arrows are laid out

SIZE_DEFAULT, SIZE_MIN, SIZE_MAX = 16.0, 4.0, 200.0
DRAWN_SIZE = 24.0  # every formula is drawn in this size; the asked one is a matter of the view box
MARGIN = 1.5
CURRENT = "currentColor"
DRAWN_BY = f"ziamath {version('ziamath')}"


def formula_svg(
    latex: str, *, display: bool = True, size: float = SIZE_DEFAULT, color: str | None = None
) -> Drawing:
    """Draw the formula in letters of `size` CSS pixels, in `color` or that of the text around it.

    `display` sets it as on a line of its own: limits above and below, large sums and fractions.
    """
    if not SIZE_MIN <= size <= SIZE_MAX:
        raise BadFormula(f"The size is {size:g}; it can be {SIZE_MIN:g} to {SIZE_MAX:g} pixels")
    ink = CURRENT if color is None else css_color(color)
    try:
        tree = mathml(latex, display=display)
        tree.set("mathcolor", ink)
        drawn = _lay_out(tree)
        _look_through(drawn.node, latex)
        root = drawn.svgxml()
    except RecursionError:
        raise BadFormula("The formula is nested too deeply") from None
    scale = size / DRAWN_SIZE
    width, height = (round(float(root.get(side)) * scale, 3) for side in ("width", "height"))
    return Drawing(
        svg=clean(root, title=latex, width=width, height=height, view_box=root.get("viewBox")),
        width=width,
        height=height,
        baseline=round((MARGIN - drawn.node.bbox.ymin) * scale, 3),
        drawn_by=DRAWN_BY,
    )


def _lay_out(tree: Element) -> Any:
    try:
        return ziamath.Math(tree, size=DRAWN_SIZE, margin=MARGIN)
    except (AssertionError, AttributeError, IndexError, TypeError, ValueError) as error:
        # What is missing in a formula is missing in its tree, and ziamath meets it unprepared.
        raise BadFormula("The formula is not complete: an argument is missing") from error


def _look_through(node: Any, latex: str) -> None:
    """Refuse letters that the font does not have; give lines the colour of what they belong to."""
    if isinstance(node, Glyph) and node.glyph.index == 0:
        said = f"There is no letter for {node.char!r} in the font"
        at = latex.find(node.char)
        line, column = place(latex, at) if at >= 0 else (None, None)
        raise BadFormula(said, line=line, column=column)
    for below in node.nodes:
        if isinstance(below, HLine):
            below.style = node.style
        _look_through(below, latex)
