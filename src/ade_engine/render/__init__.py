"""Draw formulas and diagrams as SVG that is safe to embed, and as PNG."""

from ade_engine.render import import_ziamath
from ade_engine.render.diagram import diagram_svg
from ade_engine.render.formula import formula_svg
from ade_engine.render.raster import to_png
from ade_engine.render.render_errors import (
    BadDiagram,
    BadFormula,
    BadPicture,
    GraphvizNotFound,
    RenderError,
)
from ade_engine.render.safe_svg import Drawing

assert import_ziamath  # must come before the modules that import ziamath

__all__ = [
    "BadDiagram",
    "BadFormula",
    "BadPicture",
    "Drawing",
    "GraphvizNotFound",
    "RenderError",
    "diagram_svg",
    "formula_svg",
    "to_png",
]
