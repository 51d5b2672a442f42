"""Turn a formula into MathML that can be drawn: convert it, put back what was taken out, repair.

The repairs are for what latex2mathml says in a way that ziamath does not understand, or that TeX
would draw differently: alphabets, hats, sizes of delimiters, the style of matrices.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import Converter
from latex2mathml.symbols_parser import convert_symbol
from ziamath import operators
from ziamath.styles import MathVariant, styledchr

from ade_engine.render import latex as reading
from ade_engine.render.latex import HELD, HELD_FIRST, Held, Mark, Operator, Run, Sign, Text
from ade_engine.render.render_errors import BadFormula
from ade_engine.render.spacing import CLOSE, OPEN, SPACED_AS, em, is_arrow, is_sign, set_spaces
from ade_engine.render.ziamath_patches import OVER, OVER_AND_UNDER

COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)")
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
SIGNS = {"-": "−", "*": "∗", "~": "∼"}
STRUCK = "\u29f8"  # what the converter makes of a \not that it cannot combine
FENCES = {*OPEN, *CLOSE, *"|‖∣∥"}
GROWING = {"fence", "minsize", "stretchy"}
MATRIX_FENCES = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖", "∥": "∥"}
# Heights of \big, \Big, \bigg and \Bigg in TeX, by what latex2mathml calls them.
BIG = {"1.2em": 1.2, "1.623em": 1.8, "2.047em": 2.4, "2.470em": 3.0}
LABEL = "0.556em"  # by this the labels of arrows are told from others
HYPHENS = (("---", "—"), ("--", "–"), ("-", "‐"), ("``", "“"), ("''", "”"), ("`", "‘"), ("'", "’"))

SAID = {
    exceptions.NumeratorNotFoundError: "A fraction has nothing above its line",
    exceptions.DenominatorNotFoundError: "A fraction has nothing below its line",
    exceptions.ExtraLeftOrMissingRightError: "\\left and \\right do not belong together",
    exceptions.MissingSuperScriptOrSubscriptError: "Nothing follows a ^ or _",
    exceptions.DoubleSubscriptsError: "Two subscripts follow each other; put braces around one",
    exceptions.DoubleSuperscriptsError: "Two superscripts follow each other; put braces around one",
    exceptions.NoAvailableTokensError: "The formula ends where something must follow",
    exceptions.InvalidAlignmentError: "Columns are aligned by the letters l, c, r and | only",
    exceptions.InvalidWidthError: "A width is not a number",
    exceptions.LimitsMustFollowMathOperatorError: "\\limits must follow an operator",
    StopIteration: "The formula ends where something must follow",
}


def mathml(latex: str, *, display: bool) -> Element:
    """Return the formula as MathML, spaces set."""
    source = reading.read(latex)
    converter = Converter(display="block" if display else "inline")
    try:
        tree = converter.convert_to_element(source.latex)
    except RecursionError:
        raise BadFormula("The formula is nested too deeply") from None
    except Exception as error:  # the converter raises whatever comes first when a formula is wrong
        said = SAID.get(type(error), "The formula cannot be read as LaTeX")
        raise BadFormula(said) from None
    tree.attrib.pop("xmlns", None)
    for element in tree.iter():
        element.text = html.unescape(element.text) if element.text else element.text
    _put_back(tree, source.held, display)
    _know(tree, latex)
    _repair(tree)
    set_spaces(tree, display=display)
    return tree


def _know(tree: Element, latex: str) -> None:
    """Replace commands that stand for one sign; any other that is left is not known."""
    for element in tree.iter():
        if element.text == STRUCK:
            raise _unknown(r"\not", latex, "cannot strike out what follows it")
        if element.tag == "mtext" or not element.text or "\\" not in element.text:
            continue
        symbol = convert_symbol(element.text)
        if symbol is None:
            found = COMMAND.search(element.text)
            raise _unknown(found[0] if found else "\\", latex, "is not known")
        element.text = chr(int(symbol, 16))


def _unknown(command: str, latex: str, said: str) -> BadFormula:
    message = f"The command {command} {said}"
    if found := re.search(re.escape(command) + r"(?![a-zA-Z])", latex):
        line, column = reading.place(latex, found.start())
        return BadFormula(message, line=line, column=column)
    return BadFormula(message)


def _put_back(element: Element, held: list[Held], display: bool) -> None:
    """Replace the signs that were left for what was taken out of the source."""
    mark: Mark | None = None
    children = []
    for child in element:
        found = _held(child, held)
        if isinstance(found, Mark):
            mark = found
            continue
        if found is None:
            _put_back(child, held, display)
        back = child if found is None else _restored(found, display)
        if mark is not None:
            _spaced_as(back, mark)
            mark = None
        children.append(back)
    element[:] = children


def _held(element: Element, held: list[Held]) -> Held | None:
    text = element.text or ""
    if not HELD.search(text):
        return None
    if len(text) > 1 or element.tag != "mi":
        raise BadFormula("A text or the name of an operator stands where none can be")
    return held[ord(text) - HELD_FIRST]


def _restored(held: Held, display: bool) -> Element:
    if isinstance(held, Operator):
        return _leaf(
            "mo", held.name, movablelimits=str(held.with_limits).lower(), **{SPACED_AS: "op"}
        )
    if isinstance(held, Sign):
        return _leaf("mo", held.char, **{SPACED_AS: held.spaced_as})
    assert isinstance(held, Text)
    runs = [_run(run, display) for run in held.runs if run.content]
    if len(runs) == 1:
        return runs[0]
    row = Element("mrow")
    row.extend(runs)
    return row


def _run(run: Run, display: bool) -> Element:
    if run.is_formula:
        try:
            inner = mathml(run.content, display=False)
        except BadFormula as error:  # its place is told from the beginning of the inner formula
            raise BadFormula(f"In a text: {error.message}") from None
        inner.tag, inner.attrib = "mrow", {"displaystyle": "false"}
        return inner
    words = run.content
    for plain, typeset in HYPHENS:
        words = words.replace(plain, typeset)
    variant = {"mathvariant": run.variant} if run.variant else {}
    return _leaf("mtext", re.sub(" +", "\u00a0", words), **variant)


def _spaced_as(element: Element, mark: Mark) -> None:
    """Mark an element, or what its scripts are set to; an operator has them above and below."""
    over = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
    if mark.spaced_as == "op" and element.tag in over:
        element.tag = over[element.tag]
    element.set(SPACED_AS, mark.spaced_as)


def _leaf(tag: str, text: str, **attributes: str) -> Element:
    element = Element(tag, attributes)
    element.text = text
    return element


def _repair(element: Element) -> None:
    if len(element) != PARTS.get(element.tag, len(element)):
        raise BadFormula("The formula is not complete: an argument is missing")
    children: list[Element] = []
    for child in element:
        _repair(child)
        children.extend(_unstyled(child, element))
    element[:] = children
    if element.tag in ROWS:
        _bind(element)
    if repair := REPAIRS.get(element.tag):
        repair(element)


def _bind(row: Element) -> None:
    """Make one thing of a binomial or a matrix and what stands on both its sides."""
    if len(row) > 1 and {row[0].text, row[-1].text} & {"⟨", "⟩"}:
        for bar in (row[0], row[-1]):  # of \bra and \ket: nothing is divided by it
            bar.text = "|" if bar.text == "∣" else bar.text
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


def _unstyled(child: Element, parent: Element) -> Iterator[Element]:
    """Hand the attributes of `mstyle` down to what it holds, so that rows stay rows of atoms."""
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
    """Set letters in their alphabet; more than one letter is the name of an operator."""
    text = element.text or ""
    variant = element.attrib.pop("mathvariant", None)
    if variant in VARIANTS and variant != "normal":
        element.text = "".join(styledchr(char, VARIANTS[variant]) for char in text)
    elif variant == "normal":
        element.set("mathvariant", variant)
    elif text in ITALIC:
        element.text = ITALIC[text]
    elif len(text) == 1 and (is_sign(text) or text in operators.names):
        element.tag = "mo"
        _operator(element)
    elif len(text) > 1 and text.isalpha():
        element.tag = "mo"
        element.set(SPACED_AS, "ord" if text == "mod" else "op")  # \pmod sets its own space
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
    element.text = SIGNS.get(text, text)
    variant = element.attrib.pop("mathvariant", None)
    if variant in VARIANTS and text.isalnum():
        element.text = "".join(styledchr(char, VARIANTS[variant]) for char in text)
    if (text in FENCES or is_arrow(text)) and not GROWING & element.attrib.keys():
        element.set("stretchy", "false")  # only \left and \right make them grow
    if (size := element.get("minsize")) in BIG:
        element.set("minsize", em(BIG[size]))
        element.set("maxsize", em(BIG[size]))


def _over(element: Element) -> None:
    """Let arrows grow with their labels; tell a hat, which has one size, from one that grows."""
    if len(element) > 1 and element[1].tag == "mpadded" and element[1].get("lspace") == LABEL:
        element.tag = OVER_AND_UNDER if len(element) == 3 else OVER
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


def _fraction(element: Element) -> None:
    """Set what is above and below the line as in a text: TeX does, also in display."""
    for part in element:
        part.attrib.setdefault("displaystyle", "false")


def _table(element: Element) -> None:
    """Set matrices as text; what is aligned for display says so itself."""
    if element.get("displaystyle") == "true":
        element.set("rowspacing", em(0.5))
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
    """Say widths in ems as they are meant."""
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
