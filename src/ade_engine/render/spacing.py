"""Set the spaces of a formula as TeX does: by the classes of neighbouring atoms.

Every atom of a row has a class, and a table (The TeXbook, chapter 18) gives the space between two
neighbours. A sign like + is binary only between two operands: the minus of `-x` belongs to its x.
In scripts most spaces are left out.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ziamath.operators import leftfences

from ade_engine.render.ziamath_arrows import ARROW_OVER, ARROW_UNDER_OVER
from ade_engine.render.ziamath_scripts import PRE_SCRIPTS

ATOM_CLASS = (
    "atom-class"  # an attribute that overrides the class of a sign; only this module reads it
)
CLASSES = ("ord", "op", "bin", "rel", "open", "close", "punct", "inner")
THIN, MEDIUM, THICK = 3 / 18, 4 / 18, 5 / 18
# Rows: the left neighbour, columns: the right one, in the order of CLASSES. Spaces written as a
# letter are left out in scripts.
SPACES = {"0": 0.0, "1": THIN, "a": THIN, "b": MEDIUM, "c": THICK}
SPACE_TABLE = {
    "ord": "01bc000a",
    "op": "110c000a",
    "bin": "bb00b00b",
    "rel": "cc00c00c",
    "open": "00000000",
    "close": "01bc000a",
    "punct": "aa0aaaaa",
    "inner": "a1bca0aa",
}

OPEN = frozenset("([{⟨⌊⌈⟦⟪")
CLOSE = frozenset(")]}⟩⌋⌉⟧⟫!?")
PUNCT = frozenset(",;")
INNER = frozenset("…⋯⋱⋰")
BIN = frozenset("+−±∓×÷·∗∘∙∩∪⊎⊓⊔∧∨⊕⊖⊗⊘⊙⋅⋆⋄∖≀†‡⊼⊽⋉⋊⨯⨿△▽◁▷∔∸⊞⊟⊠⊡⧵")
OP = frozenset("∏∐∑∫∬∭∮∯∰∱∲∳⋀⋁⋂⋃⨀⨁⨂⨃⨄⨅⨆⨉⨋⨌")
ORD = frozenset("∀∃∄∅∆∇∂∞∎√∛∜∠∡∢⊤∁⋮")
REL = frozenset("=<>:⟂⟝⟞⫽")
ARROWS = ((0x2190, 0x21FF), (0x27F0, 0x27FF), (0x2900, 0x297F))
RELATIONS = (
    (0x2190, 0x21FF),
    (0x2200, 0x22FF),
    (0x27F0, 0x27FF),
    (0x2900, 0x297F),
    (0x2A66, 0x2AFF),
)

FORMS = {"prefix": "open", "postfix": "close"}  # of \left and \right
SCRIPTED = {
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
    ARROW_OVER,
    ARROW_UNDER_OVER,
    PRE_SCRIPTS,
}
FRACTION_PADDING = -0.1  # ziamath sets 0.22 em beside a fraction, TeX 0.12
FENCE_PADDING = -0.148  # ziamath sets this before \left


def em(ems: float) -> str:
    """Return a length in ziamath's em, which is 4/3 of the font size."""
    return f"{ems * 0.75:.4f}em"


def set_spaces(element: Element, *, display: bool) -> None:
    """Put spaces between the atoms of every row."""
    _descend(element, in_script=False, in_text=not display)


def _descend(element: Element, *, in_script: bool, in_text: bool) -> None:
    display = element.get("displaystyle")
    in_text = in_text if display is None else display != "true"
    in_script = element.get("scriptlevel", "1" if in_script else "0") != "0"
    scripts = element.tag in SCRIPTED
    for index, child in enumerate(element):
        smaller = (scripts and index > 0) or (element.tag == "mfrac" and in_text)
        _descend(
            child,
            in_script=in_script or smaller,
            in_text=in_text or smaller or element.tag == "mfrac",
        )
    if element.tag not in ("mtable", "mtr", "mfrac", "mroot", *SCRIPTED):
        _space_row(element, in_script)
    for child in element:
        if child.tag == "mo":
            child.set("lspace", "0")
            child.set("rspace", "0")


def _space_row(row: Element, in_script: bool) -> None:
    """Insert the spaces of one row."""
    atoms = [child for child in row if child.tag != "mspace" and child.get("width") != "0"]
    classes = dict(zip(map(id, atoms), _classes(atoms), strict=True))
    children: list[Element] = []
    left: Element | None = None
    for child in row:
        if id(child) in classes:
            if left is not None:
                width = _width(classes[id(left)], classes[id(child)], in_script)
                width += FRACTION_PADDING * ((left.tag == "mfrac") + (child.tag == "mfrac"))
                width += FENCE_PADDING * (_is_fenced(child) and child[0].text in leftfences)
                if width:
                    children.append(Element("mspace", width=em(width)))
            left = child
        children.append(child)
    row[:] = children
    for atom in atoms:
        atom.attrib.pop(ATOM_CLASS, None)


def _width(left: str, right: str, in_script: bool) -> float:
    kind = SPACE_TABLE[left][CLASSES.index(right)]
    return 0.0 if in_script and kind.isalpha() else SPACES[kind]


def _classes(atoms: list[Element]) -> list[str]:
    """Return the classes of a row; a binary sign without two operands becomes ordinary."""
    classes = [_class(atom) for atom in atoms]
    for at, own in enumerate(classes):
        before = classes[at - 1] if at else "open"
        if own == "bin" and before in ("bin", "op", "rel", "open", "punct"):
            classes[at] = "ord"
        elif own in ("rel", "close", "punct") and before == "bin":
            classes[at - 1] = "ord"
    if classes and classes[-1] == "bin":
        classes[-1] = "ord"
    return classes


def _class(atom: Element) -> str:
    if (declared := atom.get(ATOM_CLASS)) is not None:
        return declared
    if atom.tag in SCRIPTED:
        return _class(_core(atom))
    if atom.tag == "mo":
        return _sign(atom)
    return "inner" if _is_fenced(atom) else "ord"


def _is_fenced(atom: Element) -> bool:
    """Tell whether an atom is the content of \\left … \\right."""
    return atom.tag == "mrow" and len(atom) > 1 and atom[0].get("form") == "prefix"


def _core(atom: Element) -> Element:
    """Return the base that scripts are attached to."""
    core = atom
    while core.tag in SCRIPTED or (core is not atom and core.tag == "mrow" and len(core) == 1):
        core = core[0]
    return core


def is_arrow(text: str) -> bool:
    """Tell whether a text is one arrow."""
    return len(text) == 1 and any(low <= ord(text) <= high for low, high in ARROWS)


def is_sign(text: str) -> bool:
    """Tell whether a text is a sign that has space around it."""
    return _class_of_sign(text) != "ord"


def _sign(atom: Element) -> str:
    text = atom.text or ""
    if atom.get("fence") == "true" and atom.get("form") in FORMS:
        return FORMS[atom.get("form", "")]
    if text == "mod":
        return "bin"
    if len(text) > 1 and text[0].isalpha():
        return "op"
    return _class_of_sign(text)


def _class_of_sign(text: str) -> str:
    for signs, name in SIGNS:
        if text in signs:
            return name
    if len(text) == 1 and any(low <= ord(text) <= high for low, high in RELATIONS):
        return "rel"
    return "ord"


SIGNS = (
    (OPEN, "open"),
    (CLOSE, "close"),
    (PUNCT, "punct"),
    (INNER, "inner"),
    (OP, "op"),
    (BIN, "bin"),
    (ORD, "ord"),
    (REL, "rel"),
)
