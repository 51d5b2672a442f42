"""Draw formulas and diagrams as SVG that is safe to embed, and as PNG."""

from ade_engine.render import importing
from ade_engine.render.diagram import diagram_svg
from ade_engine.render.errors import (
    BadDiagram,
    BadFormula,
    BadPicture,
    GraphvizNotFound,
    RenderError,
)
from ade_engine.render.formula import formula_svg
from ade_engine.render.job import main
from ade_engine.render.picture import Picture
from ade_engine.render.raster import to_png

assert importing  # before anything that imports ziamath itself

__all__ = [
    "BadDiagram",
    "BadFormula",
    "BadPicture",
    "GraphvizNotFound",
    "Picture",
    "RenderError",
    "diagram_svg",
    "formula_svg",
    "main",
    "to_png",
]
