"""Convert an SVG drawing to PNG, by Typst."""

from __future__ import annotations

import functools
import re
import struct
from importlib.resources import files
from xml.etree import ElementTree

import typst

from ade_engine.render import typst_threads
from ade_engine.render.font_families import MONO, SANS, SERIF, generic_family
from ade_engine.render.render_errors import BadPicture

assert typst_threads  # imported for its effect on Typst

SCALE_MIN, SCALE_MAX = 0.1, 16.0
PIXELS_MAX = 25_000_000
POINTS_PER_INCH = 72
# The drawing is passed as an input, so that Typst reads no file.
PAGE = b"""\
#set page(
  width: float(sys.inputs.width) * 1pt,
  height: float(sys.inputs.height) * 1pt,
  margin: 0pt,
  fill: none,
)
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, height: 100%)
"""
FONT_FAMILY = re.compile(r'font-family="([^"]*)"')
BUNDLED = {SANS: "DejaVu Sans", SERIF: "Libertinus Serif", MONO: "DejaVu Sans Mono"}


@functools.cache
def bundled_fonts() -> typst.Fonts:
    """Return the fonts of the installed wheels; fonts of the host would change the pixels."""
    return typst.Fonts(include_system_fonts=False, font_paths=[str(files("ziafont") / "fonts")])


def to_png(svg: str, *, scale: float = 2.0) -> bytes:
    """Return the drawing as PNG on a transparent background, `scale` pixels per CSS pixel.

    The SVG must come from `safe_svg`: it is drawn without further checks. `currentColor` becomes
    black.
    """
    width, height = _size(svg)
    if not SCALE_MIN <= scale <= SCALE_MAX:
        raise BadPicture(f"The scale is {scale:g}; it must be from {SCALE_MIN:g} to {SCALE_MAX:g}")
    pixels = width * height * scale * scale
    if pixels > PIXELS_MAX:
        raise BadPicture(
            f"The image would have {pixels:,.0f} pixels; at most {PIXELS_MAX:,} are allowed. "
            "Choose a smaller scale"
        )
    png = typst.compile(
        PAGE,
        format="png",
        ppi=POINTS_PER_INCH * scale,
        font_paths=bundled_fonts(),
        sys_inputs={
            "svg": FONT_FAMILY.sub(_bundled_family, svg),
            "width": repr(width),
            "height": repr(height),
        },
    )
    assert isinstance(png, bytes)  # one page
    return png


def png_size(png: bytes) -> tuple[int, int]:
    """Return width and height in pixels."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _size(svg: str) -> tuple[float, float]:
    root = ElementTree.fromstring(svg)
    return float(root.get("width", "")), float(root.get("height", ""))


def _bundled_family(family: re.Match[str]) -> str:
    return f'font-family="{BUNDLED[generic_family(family[1])]}"'
