"""Draw a formula of LaTeX."""

from typing import Any
from xml.etree import ElementTree

import ziamath

from ade_engine.render.picture import Picture

SIZE_DEFAULT = 16.0
MARGIN = 1.0
CURRENT = "currentColor"


def formula_svg(
    latex: str, *, display: bool = True, size: float = SIZE_DEFAULT, color: str | None = None
) -> Picture:
    """Draw the formula, letters `size` CSS pixels high, in `color` or that of the text around it.

    `display` sets it as on a line of its own: limits above and below, large sums and fractions.
    """
    drawn: Any = ziamath.Latex(
        latex, size=size, color=color or CURRENT, inline=not display, title=latex, margin=MARGIN
    )
    root = drawn.svgxml()
    return Picture(
        svg=ElementTree.tostring(root, encoding="unicode"),
        width=float(root.get("width")),
        height=float(root.get("height")),
        baseline=round(MARGIN - drawn.node.bbox.ymin, 3),
    )
