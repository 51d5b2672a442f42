"""Load what drawing formulas needs, and the outlines of common letters.

Outlines are read from the font when a letter is first drawn. Nothing is rasterised here, because
that starts threads.
"""

import string

from ade_engine.render.formula import formula_svg
from ade_engine.render.raster import bundled_fonts

COMMON = (
    " ".join(string.ascii_letters + string.digits),
    r"\alpha\beta\gamma\delta\varepsilon\theta\lambda\mu\pi\rho\sigma\tau\varphi\omega\Delta",
    r"\int_0^\infty \frac{a}{\sqrt{b}}\,dx = \sum_{i=1}^n \left(x_i - \bar{x}\right)^2 \leq",
)

for latex in COMMON:
    formula_svg(latex)
bundled_fonts()
