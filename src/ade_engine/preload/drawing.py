"""Do once, before any job is forked, what each would otherwise do again: import this.

Letters are read from the font when they are first drawn. Nothing is rasterised here: that starts
threads, and a process with threads is not one to fork.
"""

import string

from ade_engine.render.formula import formula_svg
from ade_engine.render.raster import fonts

COMMON = (
    " ".join(string.ascii_letters + string.digits),
    r"\alpha\beta\gamma\delta\varepsilon\theta\lambda\mu\pi\rho\sigma\tau\varphi\omega\Delta",
    r"\int_0^\infty \frac{a}{\sqrt{b}}\,dx = \sum_{i=1}^n \left(x_i - \bar{x}\right)^2 \leq",
)

for one in COMMON:
    formula_svg(one)
fonts()
