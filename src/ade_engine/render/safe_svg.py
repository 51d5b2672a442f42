"""Make SVG that is safe to embed in a page.

A drawing is copied, not filtered. The copy gets only the elements and attributes on the lists
below, and only values that match their pattern. So whatever is new, odd or hidden is not in the
copy: no script, no style sheet, no reference except to the drawing's own gradients, and no
identifier that could collide with another one on a page. The same drawing gives the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from xml.parsers import expat

from ade_engine.render.render_errors import BadPicture

SVG = "http://www.w3.org/2000/svg"
TITLE_CHARS_MAX = 1_000
ELEMENTS_MAX = 50_000
DEPTH_MAX = 100
SIZE_MAX = 30_000.0

# Each pattern matches a text in at most one way. Otherwise a hostile value would make the regular
# expression backtrack for minutes. That is why numbers must have a separator between them.
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
NUMBERS = re.compile(rf"[\s,]*{NUMBER}(?:[\s,]+{NUMBER})*[\s,]*")
LENGTH = re.compile(rf"{NUMBER}(?:px|pt|em|%)?")
PATH = re.compile(r"[MmZzLlHhVvCcSsQqTtAa\d\s.,eE+-]*")
TRANSFORM = re.compile(r"(?:(?:matrix|translate|scale|rotate|skewX|skewY)\([\d\s.,eE+-]*\)[\s,]*)+")
PAINT = re.compile(r"[a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8}|url\(#[\w.-]{1,100}\)")
KEYWORD = re.compile(r"[a-zA-Z-]{1,40}")
FONTS = re.compile(r"[\w\s,'.-]{1,200}")
ATTRIBUTES = {
    **dict.fromkeys(("d",), PATH),
    **dict.fromkeys(("points", "viewBox", "stroke-dasharray"), NUMBERS),
    **dict.fromkeys(("transform", "gradientTransform"), TRANSFORM),
    **dict.fromkeys(("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry"), LENGTH),
    **dict.fromkeys(("fx", "fy", "width", "height", "dx", "dy", "offset", "textLength"), LENGTH),
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity", "stop-opacity"), LENGTH),
    **dict.fromkeys(("stroke-width", "stroke-miterlimit", "font-size", "font-weight"), LENGTH),
    **dict.fromkeys(("fill", "stroke", "stop-color"), PAINT),
    **dict.fromkeys(("fill-rule", "stroke-linecap", "stroke-linejoin", "text-anchor"), KEYWORD),
    **dict.fromkeys(("font-style", "text-decoration", "dominant-baseline"), KEYWORD),
    **dict.fromkeys(("baseline-shift", "gradientUnits", "spreadMethod"), KEYWORD),
    "font-family": FONTS,
}
OR_KEYWORD = {"font-weight", "baseline-shift", "stroke-dasharray"}
REFERENCE = re.compile(r"url\(#([\w.-]+)\)")
SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"}
GRADIENTS = {"linearGradient", "radialGradient"}
ELEMENTS = {"svg", "g", "text", "tspan", "defs", "stop", *SHAPES, *GRADIENTS}
WITH_TEXT = {"text", "tspan"}
UNWRAPPED = {"a"}  # a link is dropped, its content is kept
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing as SVG that is safe to embed, and its size in CSS pixels.

    `baseline` is the distance from the lower edge of the drawing up to the baseline of its text. To
    align the drawing with a line of text, lower it by that distance (CSS:
    `vertical-align: -<baseline>px`). `drawn_by` is the program that laid it out, with its version.
    """

    svg: str
    width: float
    height: float
    baseline: float = 0.0
    drawn_by: str = ""


def parse_svg(svg: str) -> Element:
    """Parse SVG; entities and a document type that declares anything are rejected."""
    builder = _TreeBuilder()
    try:
        builder.parser.Parse(svg.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise BadPicture("The drawing is not valid SVG", line=error.lineno) from None
    return builder.root


class _TreeBuilder:
    """Build a tree of the elements of SVG; skip other elements with their content."""

    def __init__(self) -> None:
        self.parser: Any = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.root = Element("svg")
        self._path: list[Element] = []
        self._skipped_depth = 0
        self._count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > ELEMENTS_MAX or len(self._path) > DEPTH_MAX:
            raise BadPicture("The drawing has too many elements, or is nested too deeply")
        space, _, tag = name.rpartition(" ")
        if self._skipped_depth or space not in ("", SVG):
            self._skipped_depth += 1
            return
        element = Element(tag, attributes)
        if self._path:
            self._path[-1].append(element)
        else:
            self.root = element
        self._path.append(element)

    def _end(self, name: str) -> None:
        if self._skipped_depth:
            self._skipped_depth -= 1
        else:
            self._path.pop()

    def _text(self, data: str) -> None:
        if self._skipped_depth or not self._path:
            return
        last = self._path[-1]
        if len(last):
            last[-1].tail = (last[-1].tail or "") + data
        else:
            last.text = (last.text or "") + data

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            raise BadPicture("The drawing declares its own document type")

    def _entity(self, *declared: Any) -> None:
        raise BadPicture("The drawing declares entities")


def safe_copy(root: Element, *, title: str, width: float, height: float, view_box: str) -> str:
    """Return a safe copy of a drawing with a size in pixels and a title."""
    for size in (width, height):
        if not math.isfinite(size) or not 0 < size <= SIZE_MAX:
            raise BadPicture(
                f"The drawing has {width:g} x {height:g} pixels; a side has at most {SIZE_MAX:g}"
            )
    if not NUMBERS.fullmatch(view_box):
        raise BadPicture("The drawing has no size")
    text = _title_text(title)
    copied = Element("svg", {"xmlns": SVG, "width": _number(width), "height": _number(height)})
    copied.attrib |= {"viewBox": view_box, "role": "img", "aria-label": text}
    SubElement(copied, "title").text = text
    _copy_children(root, copied, _gradient_ids(root, title))
    return ElementTree.tostring(copied, encoding="unicode")


def _number(value: float) -> str:
    """Write a number with as many digits as a drawing needs."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def _title_text(title: str) -> str:
    plain = NOT_XML.sub("\ufffd", title).strip()
    return plain if len(plain) <= TITLE_CHARS_MAX else plain[: TITLE_CHARS_MAX - 1] + "…"


def _gradient_ids(root: Element, title: str) -> dict[str, str]:
    """Return new ids for gradients, which no other drawing on the page has."""
    digest = hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:12]
    old = [one.get("id") for one in root.iter() if one.tag in GRADIENTS]
    return {name: f"g{digest}-{at}" for at, name in enumerate(filter(None, old))}


def _copy_children(source: Element, target: Element, ids: dict[str, str]) -> None:
    for child in source:
        if child.tag in UNWRAPPED:
            _copy_children(child, target, ids)
        elif child.tag in ELEMENTS and child.tag != "svg":
            copied = SubElement(target, child.tag, _attributes(child, ids))
            if child.tag in WITH_TEXT and child.text:
                copied.text = NOT_XML.sub("\ufffd", child.text)
            _copy_children(child, copied, ids)
            if copied.tag in ("g", "defs") and not len(copied):
                del target[-1]
        if target.tag in WITH_TEXT and child.tail:
            _append_text(target, NOT_XML.sub("\ufffd", child.tail))


def _append_text(target: Element, text: str) -> None:
    if len(target):
        target[-1].tail = (target[-1].tail or "") + text
    else:
        target.text = (target.text or "") + text


def _attributes(element: Element, ids: dict[str, str]) -> dict[str, str]:
    attributes = dict(element.attrib)
    for declared in attributes.pop("style", "").split(";"):
        key, colon, value = declared.partition(":")
        if colon:
            attributes.setdefault(key.strip(), value.strip())
    kept = {key: value for key, value in attributes.items() if _is_harmless(key, value)}
    for key, value in kept.items():
        if reference := REFERENCE.fullmatch(value):
            kept[key] = f"url(#{ids[reference[1]]})" if reference[1] in ids else "none"
    if element.tag in GRADIENTS and attributes.get("id") in ids:
        kept["id"] = ids[attributes["id"]]
    return kept


def _is_harmless(key: str, value: str) -> bool:
    form = ATTRIBUTES.get(key)
    if form is None:
        return False
    return bool(form.fullmatch(value) or (key in OR_KEYWORD and KEYWORD.fullmatch(value)))
