"""Repair the MathML of latex2mathml.

Repairs are needed where ziamath does not understand what latex2mathml writes, or would draw it
differently from TeX: alphabets, hats, sizes of delimiters, the style of matrices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from ziamath import operators
from ziamath.styles import MathVariant, styledchr

from ade_engine.render.render_errors import BadFormula
from ade_engine.render.spacing import ATOM_CLASS, CLOSE, OPEN, em, is_arrow, is_sign
from ade_engine.render.ziamath_arrows import ARROW_OVER, ARROW_UNDER_OVER

PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2}
PARTS |= {"msubsup": 3, "munderover": 3}
ROWS = {"math", "mrow", "mtd", "msqrt", "mpadded", "mphantom", "menclose"}
ITALIC = {
    **{char: styledchr(char, MathVariant("serif", italic=True)) for char in "ϵϑϰϕϱϖ∂"},
    "ı": "𝚤",
    "ȷ": "𝚥",
}
VARIANTS = {
    "normal": MathVariant("serif"),
    "bold": MathVariant("serif", bold=True),
    "italic": MathVariant("serif", italic=True),
    "bold-italic": MathVariant("serif", bold=True, italic=True),
    "double-struck": MathVariant("double"),
    "script": MathVariant("script"),
    "fraktur": MathVariant("fraktur"),
    "sans-serif": MathVariant("sans"),
    "sans-serif-italic": MathVariant("sans", italic=True),
    "monospace": MathVariant("mono"),
}
SIGN_REPLACEMENTS = {"-": "−", "*": "∗", "~": "∼"}
FENCES = {*OPEN, *CLOSE, *"|‖∣∥"}
GROWING = {"fence", "minsize", "stretchy"}
MATRIX_FENCES = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖", "∥": "∥"}
# Heights of \big, \Big, \bigg and \Bigg in TeX, by what latex2mathml calls them.
BIG_EMS = {"1.2em": 1.2, "1.623em": 1.8, "2.047em": 2.4, "2.470em": 3.0}
ARROW_LABEL_SPACE = "0.556em"  # the converter pads the labels of arrows, and nothing else, by this
BESIDE = {"munder": "msub", "mover": "msup", "munderover": "msubsup"}
MOVABLE = {*"∏∐∑⋀⋁⋂⋃⨀⨁⨂⨃⨄⨅⨆", "lim", "max", "min", "sup", "inf", "det", "gcd", "Pr"}
MOVABLE |= {"lim\u2009sup", "lim\u2009inf", "lim sup", "lim inf", "limsup", "liminf"}
AFTER_BRACE = "after-brace"  # an attribute of tables in display style, between conversion and here
CASES_SPACE = 0.25


def repair(element: Element) -> None:
    """Repair an element and all below it."""
    if len(element) != PARTS.get(element.tag, len(element)):
        raise BadFormula("The formula is not complete: an argument is missing")
    children: list[Element] = []
    for child in element:
        repair(child)
        children.extend(_without_style(child, element))
    element[:] = children
    if element.tag in ROWS:
        _group_fenced(element)
    if change := REPAIRS.get(element.tag):
        change(element)


def _group_fenced(row: Element) -> None:
    """Group a binomial or a matrix with the fences on both sides of it."""
    if len(row) > 1 and {row[0].text, row[-1].text} & {"⟨", "⟩"}:
        for bar in (row[0], row[-1]):  # \bra and \ket: the bar is a fence, not "divides"
            bar.text = "|" if bar.text == "∣" else bar.text
    for at, child in enumerate(row):
        if child.attrib.pop(AFTER_BRACE, None):
            row.insert(at, Element("mspace", width=em(CASES_SPACE)))
            break
    at = 0
    while at + 2 < len(row):
        opening, middle, closing = row[at : at + 3]
        if opening.tag == closing.tag == "mo" and (
            (middle.get("linethickness") == "0" and "minsize" in opening.attrib)
            or (middle.tag == "mtable" and MATRIX_FENCES.get(opening.text or "") == closing.text)
        ):
            if middle.tag == "mtable":
                opening.attrib = {"stretchy": "true", "fence": "true", "form": "prefix"}
                closing.attrib = {"stretchy": "true", "fence": "true", "form": "postfix"}
            whole = Element("mrow")
            whole.extend((opening, middle, closing))
            row[at : at + 3] = [whole]
        at += 1


def _without_style(child: Element, parent: Element) -> Iterator[Element]:
    """Replace `mstyle` by its children with its attributes, so that rows contain atoms only."""
    if child.tag != "mstyle":
        yield child
        return
    if parent.tag in ROWS or len(child) == 1:
        for inner in child:
            inner.attrib = {**child.attrib, **inner.attrib}
            yield inner
        return
    child.tag = "mrow"
    yield child


def _identifier(element: Element) -> None:
    """Put letters in their alphabet; several letters are the name of an operator."""
    text = element.text or ""
    variant = element.attrib.pop("mathvariant", None)
    if variant in VARIANTS and variant != "normal":
        element.text = "".join(styledchr(char, VARIANTS[variant]) for char in text)
        if "bold" in variant and element.text == text:
            element.set("mathvariant", "bold")  # no bold form of its own: drawn with thicker lines
    elif variant == "normal":
        element.set("mathvariant", variant)
    elif text in ITALIC:
        element.text = ITALIC[text]
    elif len(text) == 1 and (is_sign(text) or text in operators.names):
        element.tag = "mo"
        _operator(element)
    elif len(text) > 1 and text.isalpha():
        element.tag = "mo"
        element.set(ATOM_CLASS, "ord" if text == "mod" else "op")  # \pmod sets its own space
    elif len(element):  # \mathord with a whole formula in it
        element.tag = "mrow"


def _number(element: Element) -> None:
    variant = element.attrib.pop("mathvariant", None)
    if variant in VARIANTS:
        element.text = "".join(styledchr(char, VARIANTS[variant]) for char in element.text or "")


def _operator(element: Element) -> None:
    text = element.text or ""
    if text == "∂" and "mathvariant" not in element.attrib:
        element.tag, element.text = "mi", ITALIC[text]
        return
    element.text = SIGN_REPLACEMENTS.get(text, text)
    variant = element.attrib.pop("mathvariant", None)
    if variant in VARIANTS and text.isalnum():
        element.text = "".join(styledchr(char, VARIANTS[variant]) for char in text)
    elif variant == "bold":
        element.set("mathvariant", variant)
    if (text in FENCES or is_arrow(text)) and not GROWING & element.attrib.keys():
        element.set("stretchy", "false")  # only \left and \right make fences grow
    if (size := element.get("minsize")) in BIG_EMS:
        element.set("minsize", em(BIG_EMS[size]))
        element.set("maxsize", em(BIG_EMS[size]))


def _over(element: Element) -> None:
    """Make arrows grow with their labels; tell accents of a fixed size from wide ones."""
    if (
        len(element) > 1
        and element[1].tag == "mpadded"
        and element[1].get("lspace") == ARROW_LABEL_SPACE
    ):
        element.tag = ARROW_UNDER_OVER if len(element) == 3 else ARROW_OVER
        element[1:] = [label[0] for label in element[1:]]
        return
    over = element[-1]
    if over.text == "^":
        if element.get("accent") == "true":
            over.text = "ˆ"
            over.set("stretchy", "false")
        else:
            over.text = "\u0302"
    elif over.text == "∼" and over.tag == "mo":
        over.text = "~" if over.get("stretchy") == "false" else "\u0303"


def move_limits(element: Element, *, in_display: bool) -> None:
    """Put the limits of sums and the like beside them where the style is that of a text.

    The converter knows no style but that of the whole formula, so it sets them below and above in
    the cells of a matrix, too.
    """
    style = element.get("displaystyle")
    in_display = in_display if style is None else style == "true"
    beside = BESIDE.get(element.tag)
    if beside and not in_display and element[0].tag == "mo" and element[0].text in MOVABLE:
        element.tag = beside
    for child in element:
        move_limits(child, in_display=in_display)


def _fraction(element: Element) -> None:
    """Set numerator and denominator in text style, as TeX does also in display style."""
    for part in element:
        part.attrib.setdefault("displaystyle", "false")


def _table(element: Element) -> None:
    """Set matrices in text style; alignments declare display style themselves."""
    if element.get("displaystyle") == "true":
        element.set("rowspacing", em(0.5))
        if "columnspacing" not in element.attrib:  # dcases; alignments declare theirs
            element.set("columnspacing", em(1.0))
        if element.get("columnspacing", "").startswith("0em 2em"):
            element.set("columnspacing", f"0em {em(2.0)}")
    else:
        element.set("displaystyle", "false")
        element.set("columnspacing", element.get("columnspacing") or em(1.0))
        element.set("rowspacing", element.get("rowspacing") or em(0.35))
    columns = max((len(row) for row in element), default=0)
    for row in element:
        row.extend(Element("mtd") for _ in range(columns - len(row)))


def _space(element: Element) -> None:
    """Convert widths to ziamath's ems."""
    width = element.get("width", "")
    if match := re.fullmatch(r"(-?[\d.]+)(em|ex|mu)", width):
        ems = float(match[1]) / {"em": 1, "ex": 2.2, "mu": 18}[match[2]]
        element.set("width", em(ems))
    elif named := re.fullmatch(
        r"(negative)?(thin|medium|thick)mathspace", element.get("width", "")
    ):
        ems = {"thin": 3, "medium": 4, "thick": 5}[named[2]] / 18
        element.set("width", em(-ems if named[1] else ems))


REPAIRS: dict[str, Callable[[Element], None]] = {
    "mi": _identifier,
    "mn": _number,
    "mo": _operator,
    "mfrac": _fraction,
    "mover": _over,
    "munderover": _over,
    "mtable": _table,
    "mspace": _space,
}
