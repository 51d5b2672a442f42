"""Arrows of ziamath that grow with their labels. ziamath finds the classes by their tags."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from ziafont.fonttypes import BBox
from ziamath.nodes.mnode import Mnode
from ziamath.nodes.munderover import Mover, Munderover

ARROW_PADDING_EM = 0.6
ARROW_OVER, ARROW_UNDER_OVER = "arrowover", "arrowunderover"
# Signs of two arrows, which the font has in one length only: the upper and the lower arrow, and how
# far each is moved from its place, in thousandths of an em.
PAIRS = {"⇌": ("⇀", "↽", 70), "⇋": ("↼", "⇁", 70), "⇄": ("→", "←", 155), "⇆": ("←", "→", 155)}
# Arrows with two heads: the arrow, and where the second head is, relative to the first.
TWO_HEADS = {"↠": ("→", -230), "↞": ("←", 230)}


class ArrowOver(Mover, tag=ARROW_OVER):
    """An arrow as long as the label above it."""

    def __init__(self, element: Element, parent: Mnode, **kwargs: Any) -> None:
        Mnode.__init__(self, element, parent, **kwargs)
        self.over = _label(self, element[1], kwargs)
        self.base = _arrow(self, [self.over], kwargs)
        self._isaccent = True
        self._setup(**kwargs)


class ArrowUnderOver(Munderover, tag=ARROW_UNDER_OVER):
    """An arrow as long as the longer of the labels above and below it."""

    def __init__(self, element: Element, parent: Mnode, **kwargs: Any) -> None:
        Mnode.__init__(self, element, parent, **kwargs)
        self.under = _label(self, element[1], kwargs)
        self.over = _label(self, element[2], kwargs)
        self.base = _arrow(self, [self.under, self.over], kwargs)
        self._setup(**kwargs)


def _label(self: Mnode, element: Element, kwargs: dict[str, Any]) -> Mnode:
    self.increase_child_scriptlevel(element)
    return Mnode.fromelement(element, parent=self, **{**kwargs, "sup": True})


def _arrow(self: Mnode, labels: list[Mnode], kwargs: dict[str, Any]) -> Mnode:
    widest = max(label.bbox.xmax - label.bbox.xmin for label in labels)
    width = widest + ARROW_PADDING_EM * self.glyphsize
    kwargs = {**kwargs, "width": width}
    element = self.element[0]
    if element.text in PAIRS:
        return ArrowPair(element, self, **kwargs)
    if element.text in TWO_HEADS:
        return TwoHeadedArrow(element, self, **kwargs)
    return Mnode.fromelement(element, parent=self, **kwargs)


class _Composed(Mnode, tag="composedarrow"):
    """An arrow made of several glyphs."""

    def _place(self, arrow: Mnode, x: float, y: float) -> None:
        self.nodes.append(arrow)
        self.nodexy.append((x, y))

    def _arrow(self, char: str, kwargs: dict[str, Any]) -> Mnode:
        element = Element("mo", {**self.element.attrib, "lspace": "0", "rspace": "0"})
        element.text = char
        return Mnode.fromelement(element, parent=self, **kwargs)

    def _measure(self) -> None:
        placed = list(zip(self.nodexy, self.nodes, strict=True))
        self.bbox = BBox(
            min(x + node.bbox.xmin for (x, _), node in placed),
            max(x + node.bbox.xmax for (x, _), node in placed),
            min(node.bbox.ymin - y for (_, y), node in placed),
            max(node.bbox.ymax - y for (_, y), node in placed),
        )


class ArrowPair(_Composed, tag="arrowpair"):
    """Two arrows of the same length above each other."""

    def __init__(self, element: Element, parent: Mnode, **kwargs: Any) -> None:
        super().__init__(element, parent, **kwargs)
        upper, lower, distance = PAIRS[element.text or ""]
        for char, units in ((upper, distance), (lower, -distance)):
            arrow = self._arrow(char, kwargs)
            left = arrow.nodes[0].bbox.xmin
            self._place(arrow, -left, -self.units_to_points(units))
        self._measure()


class TwoHeadedArrow(_Composed, tag="twoheadedarrow"):
    """An arrow with a second head behind the first."""

    def __init__(self, element: Element, parent: Mnode, **kwargs: Any) -> None:
        super().__init__(element, parent, **kwargs)
        char, units = TWO_HEADS[element.text or ""]
        long = self._arrow(char, kwargs)
        short = self._arrow(char, {key: kwargs[key] for key in kwargs if key != "width"})
        side = "xmax" if units < 0 else "xmin"
        tip = getattr(long.bbox, side) - getattr(short.bbox, side)
        self._place(long, 0.0, 0.0)
        self._place(short, tip + self.units_to_points(units), 0.0)
        self._measure()
