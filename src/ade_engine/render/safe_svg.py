"""Make SVG that is safe to embed: keep what is known to be harmless, and nothing else.

A drawing is copied, not filtered: elements and attributes that are on the lists below, with values
that have the form that they must have. So whatever is new, odd or hidden is not in the copy: no
script, no style sheet, no reference but to the picture's own gradients, and no identifier that
could meet another one on a page. The same drawing gives the same bytes.
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

# A text must fit these in one way at most: what could be taken apart in many ways would be tried in
# all of them, for minutes. So numbers have something between them.
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
NUMBERS = re.compile(rf"[\s,]*{NUMBER}(?:[\s,]+{NUMBER})*[\s,]*")
LENGTH = re.compile(rf"{NUMBER}(?:px|pt|em|%)?")
PATH = re.compile(r"[MmZzLlHhVvCcSsQqTtAa\d\s.,eE+-]*")
TRANSFORM = re.compile(r"(?:(?:matrix|translate|scale|rotate|skewX|skewY)\([\d\s.,eE+-]*\)[\s,]*)+")
PAINT = re.compile(r"[a-zA-Z]{1,30}|#[0-9a-fA-F]{3,8}|url\(#[\w.-]{1,100}\)")
WORD = re.compile(r"[a-zA-Z-]{1,40}")
FONTS = re.compile(r"[\w\s,'.-]{1,200}")
VALUES = {
    **dict.fromkeys(("d",), PATH),
    **dict.fromkeys(("points", "viewBox", "stroke-dasharray"), NUMBERS),
    **dict.fromkeys(("transform", "gradientTransform"), TRANSFORM),
    **dict.fromkeys(("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry"), LENGTH),
    **dict.fromkeys(("fx", "fy", "width", "height", "dx", "dy", "offset", "textLength"), LENGTH),
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity", "stop-opacity"), LENGTH),
    **dict.fromkeys(("stroke-width", "stroke-miterlimit", "font-size", "font-weight"), LENGTH),
    **dict.fromkeys(("fill", "stroke", "stop-color"), PAINT),
    **dict.fromkeys(("fill-rule", "stroke-linecap", "stroke-linejoin", "text-anchor"), WORD),
    **dict.fromkeys(("font-style", "text-decoration", "dominant-baseline"), WORD),
    **dict.fromkeys(("baseline-shift", "gradientUnits", "spreadMethod"), WORD),
    "font-family": FONTS,
}
OR_A_WORD = {"font-weight", "baseline-shift", "stroke-dasharray"}
REFERRING = re.compile(r"url\(#([\w.-]+)\)")
SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"}
GRADIENTS = {"linearGradient", "radialGradient"}
ELEMENTS = {"svg", "g", "text", "tspan", "defs", "stop", *SHAPES, *GRADIENTS}
WITH_TEXT = {"text", "tspan"}
UNWRAPPED = {"a"}  # a link is left out, what it is around is kept
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Drawing:
    """Hold a drawing as SVG that is safe to embed, and its size in CSS pixels.

    `baseline` is the distance from the lower edge of the drawing up to the baseline of its text. To
    align the drawing with a line of text, lower it by that distance (CSS:
    `vertical-align: -<baseline>px`). `drawn_by` is the program that laid it out, with its version.
    """

    svg: str
    width: float
    height: float
    baseline: float = 0.0
    drawn_by: str = ""


def parse(svg: str) -> Element:
    """Read SVG; a document type that declares anything, and entities, are refused."""
    reader = _Reader()
    try:
        reader.parser.Parse(svg.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise BadPicture("The drawing is not SVG", line=error.lineno) from None
    return reader.root


class _Reader:
    """Build a tree of what belongs to SVG; the rest is passed over with all that is in it."""

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
        self._passed_over = 0
        self._count = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > ELEMENTS_MAX or len(self._path) > DEPTH_MAX:
            raise BadPicture("The drawing has too many elements, or is nested too deeply")
        space, _, tag = name.rpartition(" ")
        if self._passed_over or space not in ("", SVG):
            self._passed_over += 1
            return
        element = Element(tag, attributes)
        if self._path:
            self._path[-1].append(element)
        else:
            self.root = element
        self._path.append(element)

    def _end(self, name: str) -> None:
        if self._passed_over:
            self._passed_over -= 1
        else:
            self._path.pop()

    def _text(self, data: str) -> None:
        if self._passed_over or not self._path:
            return
        last = self._path[-1]
        if len(last):
            last[-1].tail = (last[-1].tail or "") + data
        else:
            last.text = (last.text or "") + data

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            raise BadPicture("The drawing declares a document type of its own")

    def _entity(self, *declared: Any) -> None:
        raise BadPicture("The drawing declares entities")


def clean(root: Element, *, title: str, width: float, height: float, view_box: str) -> str:
    """Copy a drawing, give it a size in pixels and say what it shows."""
    for size in (width, height):
        if not math.isfinite(size) or not 0 < size <= SIZE_MAX:
            raise BadPicture(f"The picture is {width:g} x {height:g} pixels; at most {SIZE_MAX:g}")
    if not NUMBERS.fullmatch(view_box):
        raise BadPicture("The drawing has no size")
    said = _said(title)
    copied = Element("svg", {"xmlns": SVG, "width": number(width), "height": number(height)})
    copied.attrib |= {"viewBox": view_box, "role": "img", "aria-label": said}
    SubElement(copied, "title").text = said
    _copy_children(root, copied, _names(root, title))
    return ElementTree.tostring(copied, encoding="unicode")


def number(value: float) -> str:
    """Return a number in as few digits as a picture needs."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def _said(title: str) -> str:
    plain = NOT_XML.sub("\ufffd", title).strip()
    return plain if len(plain) <= TITLE_CHARS_MAX else plain[: TITLE_CHARS_MAX - 1] + "…"


def _names(root: Element, title: str) -> dict[str, str]:
    """Return new names for gradients, which no other picture of a page has."""
    digest = hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:12]
    old = [one.get("id") for one in root.iter() if one.tag in GRADIENTS]
    return {name: f"g{digest}-{at}" for at, name in enumerate(filter(None, old))}


def _copy_children(source: Element, target: Element, names: dict[str, str]) -> None:
    for child in source:
        if child.tag in UNWRAPPED:
            _copy_children(child, target, names)
        elif child.tag in ELEMENTS and child.tag != "svg":
            copied = SubElement(target, child.tag, _attributes(child, names))
            if child.tag in WITH_TEXT and child.text:
                copied.text = NOT_XML.sub("\ufffd", child.text)
            _copy_children(child, copied, names)
            if copied.tag in ("g", "defs") and not len(copied):
                del target[-1]
        if target.tag in WITH_TEXT and child.tail:
            _append_text(target, NOT_XML.sub("\ufffd", child.tail))


def _append_text(target: Element, text: str) -> None:
    if len(target):
        target[-1].tail = (target[-1].tail or "") + text
    else:
        target.text = (target.text or "") + text


def _attributes(element: Element, names: dict[str, str]) -> dict[str, str]:
    given = dict(element.attrib)
    for declared in given.pop("style", "").split(";"):
        key, colon, value = declared.partition(":")
        if colon:
            given.setdefault(key.strip(), value.strip())
    kept = {key: value for key, value in given.items() if _is_harmless(key, value)}
    for key, value in kept.items():
        if reference := REFERRING.fullmatch(value):
            kept[key] = f"url(#{names[reference[1]]})" if reference[1] in names else "none"
    if element.tag in GRADIENTS and given.get("id") in names:
        kept["id"] = names[given["id"]]
    return kept


def _is_harmless(key: str, value: str) -> bool:
    form = VALUES.get(key)
    if form is None:
        return False
    return bool(form.fullmatch(value) or (key in OR_A_WORD and WORD.fullmatch(value)))
