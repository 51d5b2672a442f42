"""Scripts of ziamath as TeX sets them: limits of integrals, and scripts before an atom.

Limits: ziamath moves the limits of a slanted sign by its whole italic correction; TeX moves each by
half of it, from the middle of the sign. Importing this module is enough.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from ziafont.fonttypes import BBox
from ziamath.nodes import munderover
from ziamath.nodes.mnode import Mnode

PRE_SCRIPTS = "prescripts"
# The space between scripts and the atom after them, in em.
GAP_EM = 0.04

_ziamath_over, _ziamath_under = munderover.place_over, munderover.place_under


def _place_over(base: Any, over: Any, font: Any) -> tuple[float, float]:
    x, y = _ziamath_over(base, over, font)
    return (x if _slant(base, font) is None else _limit_x(base, over, font, 1), y)


def _place_under(base: Any, under: Any, font: Any) -> tuple[float, float]:
    x, y = _ziamath_under(base, under, font)
    return (x if _slant(base, font) is None else _limit_x(base, under, font, -1), y)


def _limit_x(base: Any, limit: Any, font: Any, side: int) -> float:
    """Return where a limit begins, so that its middle is above or below the slanted sign's end."""
    sign = base.nodes[-1].bbox
    middle = (sign.xmin + sign.xmax) / 2 + side * (_slant(base, font) or 0) / 2
    return float(middle - (limit.bbox.xmin + limit.bbox.xmax) / 2)


def _slant(base: Any, font: Any) -> float | None:
    """Return the italic correction of a large operator; None for anything else."""
    if base.mtag != "mo" or base.params.get("largeop") != "true" or len(base.nodes) != 1:
        return None
    correction = font.math.italicsCorrection.getvalue(base.nodes[0].glyph.index)
    return float(base.units_to_points(correction)) if correction else None


munderover.place_over, munderover.place_under = _place_over, _place_under


class PreScriptsNode(Mnode, tag=PRE_SCRIPTS):
    """Scripts before an atom, aligned with each other on the right."""

    def __init__(self, element: Element, parent: Mnode, **kwargs: Any) -> None:
        super().__init__(element, parent, **kwargs)
        constants = self.font.math.consts
        shifts = (constants.subscriptShiftDown, -constants.superscriptShiftUp)
        scripts = []
        for child in element[1:]:
            self.increase_child_scriptlevel(child)
            scripts.append(Mnode.fromelement(child, parent=self, **{**kwargs, "sup": True}))
        width = max(script.bbox.xmax for script in scripts)
        for script, shift in zip(scripts, shifts, strict=True):
            self.nodes.append(script)
            self.nodexy.append((width - script.bbox.xmax, self.units_to_points(shift)))
        filled = [
            (y, node.bbox) for (_, y), node in zip(self.nodexy, scripts, strict=True) if node.nodes
        ]
        self.bbox = BBox(
            0.0,
            width + GAP_EM * self.glyphsize,
            min((box.ymin - y for y, box in filled), default=0.0),
            max((box.ymax - y for y, box in filled), default=0.0),
        )
