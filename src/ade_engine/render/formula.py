"""Draw a formula in LaTeX."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any
from xml.etree.ElementTree import Element

import ziamath
from ziamath.drawable import Glyph, HLine

from ade_engine.render import ziamath_patches
from ade_engine.render.color import css_color
from ade_engine.render.latex_tokens import line_and_column
from ade_engine.render.mathml import mathml
from ade_engine.render.render_errors import BadFormula
from ade_engine.render.safe_svg import Drawing, safe_copy

assert ziamath_patches  # imported for its effect on ziamath

SIZE_DEFAULT, SIZE_MIN, SIZE_MAX = 16.0, 4.0, 200.0
DRAWN_SIZE = 24.0  # every formula is laid out in this size and scaled by its view box
MARGIN = 1.5
CURRENT_COLOR = "currentColor"
DRAWN_BY = f"ziamath {version('ziamath')}"


def formula_svg(
    latex: str, *, display: bool = True, size: float = SIZE_DEFAULT, color: str | None = None
) -> Drawing:
    """Draw the formula in `size` CSS pixels, in `color` or the colour of the text around it.

    `display` sets it as on its own line: limits above and below, large sums and fractions.
    """
    if not SIZE_MIN <= size <= SIZE_MAX:
        raise BadFormula(
            f"The size is {size:g} pixels; it must be from {SIZE_MIN:g} to {SIZE_MAX:g}"
        )
    ink = CURRENT_COLOR if color is None else css_color(color)
    try:
        tree = mathml(latex, display=display)
        tree.set("mathcolor", ink)
        drawn = _lay_out(tree)
        _check_glyphs(drawn.node, latex)
        root = drawn.svgxml()
    except RecursionError:
        raise BadFormula("The formula is nested too deeply") from None
    scale = size / DRAWN_SIZE
    width, height = (round(float(root.get(side)) * scale, 3) for side in ("width", "height"))
    return Drawing(
        svg=safe_copy(root, title=latex, width=width, height=height, view_box=root.get("viewBox")),
        width=width,
        height=height,
        baseline=round((MARGIN - drawn.node.bbox.ymin) * scale, 3),
        drawn_by=DRAWN_BY,
    )


def _lay_out(tree: Element) -> Any:
    try:
        return ziamath.Math(tree, size=DRAWN_SIZE, margin=MARGIN)
    except (AssertionError, AttributeError, IndexError, TypeError, ValueError) as error:
        # ziamath does not check for arguments that are missing in the tree.
        raise BadFormula("The formula is not complete: an argument is missing") from error


def _check_glyphs(node: Any, latex: str) -> None:
    """Reject characters that the font does not have; give lines the colour of their parent."""
    if isinstance(node, Glyph) and node.glyph.index == 0:
        message = f"The font has no glyph for {node.char!r}"
        at = latex.find(node.char)
        line, column = line_and_column(latex, at) if at >= 0 else (None, None)
        raise BadFormula(message, line=line, column=column)
    for child in node.nodes:
        if isinstance(child, HLine):
            child.style = node.style
        _check_glyphs(child, latex)
