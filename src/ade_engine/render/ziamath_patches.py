"""Change how ziamath lays out rows, tables and glyphs. Importing this module is enough.

Rows: ziamath lays out the content of every row twice, once to find its height and once to draw it,
so that each level of nesting doubles the work. Here only the fences are laid out again.
Tables: lines between columns and rows are drawn.
Glyphs: their outlines are drawn in place, in the integer units of the font, and not by reference. A
sign that has no bold form is drawn with thicker lines where it should be bold.
ziamath finds the classes below by the tag in their definition.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement

from ziafont.fonttypes import BBox
from ziafont.svgpath import fmt
from ziamath.drawable import Glyph, HLine, VLine
from ziamath.nodes.mnode import Mnode
from ziamath.nodes.mrow import Mrow
from ziamath.nodes.mtable import Mtable
from ziamath.styles import styledchr

# How much thicker the lines of a bold sign are, in thousandths of an em, as those of bold letters.
BOLD_UNITS = 34
STYLED_FIRST = 0x1D400  # the first letter of the alphabets that are bold, italic or the like


def _lay_out_row(self: Any, line: list[Element], **kwargs: Any) -> None:
    """Lay out a row once, and then again only the fences, which grow to its height."""
    kwargs = {key: value for key, value in kwargs.items() if key not in ("rowymin", "rowymax")}
    line = [child for child in line if child.tag != "mo" or (child.text or "").strip()]
    for child in line:
        self.nodes.append(Mnode.fromelement(child, parent=self, **kwargs))
    growing = [at for at, node in enumerate(self.nodes) if _grows(node)]
    if growing:
        rest = [node.bbox for at, node in enumerate(self.nodes) if at not in growing]
        kwargs["rowymin"] = min((box.ymin for box in rest), default=0)
        kwargs["rowymax"] = max((box.ymax for box in rest), default=0)
        for at in growing:
            self.nodes[at] = Mnode.fromelement(line[at], parent=self, **kwargs)
    x = 0.0
    edges = [(0.0, 0.0)]
    for node in self.nodes:
        self.nodexy.append((x, 0))
        edges.append((x + node.bbox.xmin, x + node.bbox.xmax))
        x += node.xadvance()
    self.bbox = BBox(
        min((left for left, _ in edges[1:]), default=0.0),
        max(right for _, right in edges),
        min((node.bbox.ymin for node in self.nodes), default=0.0),
        max((node.bbox.ymax for node in self.nodes), default=0.0),
    )
    self._xadvance = x


def _grows(node: Any) -> bool:
    """Tell whether a node is a fence that grows, possibly with scripts."""
    while node.mtag in ("msub", "msup", "msubsup"):
        node = node.base
    if node.mtag != "mo" or node.params.get("largeop") == "true":
        return False
    return bool(node.params.get("stretchy", "false") != "false")


Mrow._setup_single_line = _lay_out_row  # type: ignore[method-assign]


_OUTLINES: dict[tuple[str, int], str] = {}


def _draw_glyph(self: Any, x: float, y: float, svg: Element) -> tuple[float, float]:
    """Draw one glyph; one without an outline, such as a space, adds no element."""
    path = "" if self.phantom else _outline(self.glyph)
    if path:
        scale = self.size / self.glyph.font.info.layout.unitsperem
        transform = f"translate({fmt(x)} {fmt(y)}) scale({scale:.6g})"
        drawn = SubElement(svg, "path", d=path, transform=transform, fill=self.style.mathcolor)
        if _lacks_bold_form(self):
            drawn.set("stroke", self.style.mathcolor)
            drawn.set("stroke-width", str(BOLD_UNITS))
            drawn.set("stroke-linejoin", "round")
    return x + self.funit_to_points(self.glyph.advance()), y


def _lacks_bold_form(self: Any) -> bool:
    variant = self.style.mathvariant
    return (
        variant.bold
        and len(self.char) == 1
        and ord(self.char) < STYLED_FIRST
        and styledchr(self.char, variant) == self.char
    )


def _outline(glyph: Any) -> str:
    """Return the outline in units of the font; assembled glyphs (index below 0) are not cached."""
    key = (glyph.font.info.filename, glyph.index)
    if glyph.index >= 0 and key in _OUTLINES:
        return _OUTLINES[key]
    element = glyph.svgpath(scale_factor=1 / glyph.funits_to_points(1))
    parts = [] if element is None else [part.get("d", "") for part in element.iter("path")]
    path = " ".join(part.strip() for part in parts)
    if glyph.index >= 0:
        _OUTLINES[key] = path
    return path


Glyph.draw = _draw_glyph  # type: ignore[method-assign]


class RuledTable(Mtable, tag="mtable"):
    """Draw the lines that `columnlines` and `rowlines` declare."""

    def _setup(self, **kwargs: Any) -> None:
        super()._setup(**kwargs)
        columns = max((len(row) for row in self.element), default=0)
        cells = [
            (at % columns, at // columns, x, y, node.bbox)
            for at, ((x, y), node) in enumerate(zip(self.nodexy, self.nodes, strict=True))
        ]
        thickness = self.units_to_points(self.font.math.consts.fractionRuleThickness)
        for line in _line_positions(self.element, "columnlines"):
            left = max((x + box.xmax for c, _, x, _, box in cells if c == line - 1), default=None)
            right = min((x + box.xmin for c, _, x, _, box in cells if c == line), default=None)
            if left is not None and right is not None:
                height = self.bbox.ymax - self.bbox.ymin
                self.nodes.append(VLine(height, thickness, style=self.style, **kwargs))
                self.nodexy.append(((left + right) / 2, -self.bbox.ymax))
        for line in _line_positions(self.element, "rowlines"):
            above = max((y - box.ymin for _, r, _, y, box in cells if r == line - 1), default=None)
            below = min((y - box.ymax for _, r, _, y, box in cells if r == line), default=None)
            if above is not None and below is not None:
                width = self.bbox.xmax - self.bbox.xmin
                self.nodes.append(HLine(width, thickness, style=self.style, **kwargs))
                self.nodexy.append((self.bbox.xmin, (above + below - thickness) / 2))


def _line_positions(element: Element, name: str) -> list[int]:
    """Return after how many columns or rows a line is declared."""
    lines = element.get(name, "").split()
    return [at for at, kind in enumerate(lines, start=1) if kind != "none"]
