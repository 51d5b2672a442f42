"""Convert a formula to MathML that ziamath can draw.

The steps are: prepare the source, convert it by latex2mathml, restore what was extracted, repair
the tree (`mathml_repairs`), set the spaces.
"""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element

from latex2mathml import exceptions
from latex2mathml.converter import Converter
from latex2mathml.symbols_parser import convert_symbol

from ade_engine.render.extracted import (
    ClassedSign,
    ClassMark,
    DisplayTable,
    Extracted,
    ExtractedText,
    OperatorName,
    PreScripts,
    TextRun,
)
from ade_engine.render.latex import PLACEHOLDER, PLACEHOLDER_FIRST, prepare
from ade_engine.render.latex_tokens import line_and_column
from ade_engine.render.mathml_repairs import AFTER_BRACE, move_limits, repair
from ade_engine.render.render_errors import BadFormula
from ade_engine.render.spacing import ATOM_CLASS, set_spaces
from ade_engine.render.ziamath_scripts import PRE_SCRIPTS

BOLD_SIGNS = re.compile(r"\\(?:boldsymbol|pmb|bm)(?![a-zA-Z])")  # \mathbf is for letters only
COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)")
UNCOMBINED_NOT = (
    "\u29f8"  # the converter writes it for a \not that it cannot combine with the next sign
)
HYPHENS = (("---", "—"), ("--", "–"), ("-", "‐"), ("``", "“"), ("''", "”"), ("`", "‘"), ("'", "’"))

CONVERTER_ERRORS = {
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
    """Return the formula as MathML with its spaces set."""
    tree = _converted(latex, display)
    if not BOLD_SIGNS.search(latex):
        for sign in tree.iter("mo"):
            sign.attrib.pop("mathvariant", None)
    repair(tree)
    if r"\limits" not in latex:
        move_limits(tree, in_display=display)
    set_spaces(tree, display=display)
    return tree


def _converted(latex: str, display: bool) -> Element:
    """Return the formula as the converter writes it, with what was extracted from it."""
    prepared = prepare(latex)
    converter = Converter(display="block" if display else "inline")
    try:
        tree = converter.convert_to_element(prepared.latex)
    except RecursionError:
        raise BadFormula("The formula is nested too deeply") from None
    except Exception as error:  # for a wrong formula the converter raises exceptions of any type
        message = CONVERTER_ERRORS.get(type(error), "The formula cannot be read as LaTeX")
        raise BadFormula(message) from None
    tree.attrib.pop("xmlns", None)
    for element in tree.iter():
        element.text = html.unescape(element.text) if element.text else element.text
    _restore(tree, prepared.extracted, display)
    _replace_symbols(tree, latex)
    return tree


def _replace_symbols(tree: Element, latex: str) -> None:
    """Replace commands that denote one symbol; a command that is left is unknown."""
    for element in tree.iter():
        if element.text == UNCOMBINED_NOT:
            raise _command_error(r"\not", latex, "cannot strike out what follows it")
        if element.tag == "mtext" or not element.text or "\\" not in element.text:
            continue
        symbol = convert_symbol(element.text)
        if symbol is None:
            found = COMMAND.search(element.text)
            raise _command_error(found[0] if found else "\\", latex, "is not known")
        element.text = chr(int(symbol, 16))


def _command_error(command: str, latex: str, problem: str) -> BadFormula:
    message = f"The command {command} {problem}"
    if found := re.search(re.escape(command) + r"(?![a-zA-Z])", latex):
        line, column = line_and_column(latex, found.start())
        return BadFormula(message, line=line, column=column)
    return BadFormula(message)


def _restore(
    element: Element,
    extracted: list[Extracted],
    display: bool,
    table: Element | None = None,
) -> None:
    """Replace the placeholders by elements for what was extracted from the source."""
    mark: ClassMark | None = None
    table = element if element.tag == "mtable" else table
    children = []
    for child in element:
        found = _extracted_at(child, extracted)
        if isinstance(found, ClassMark):
            mark = found
            continue
        if isinstance(found, DisplayTable) and table is not None:
            table.set("displaystyle", "true")
            table.set(AFTER_BRACE, "true")
            continue
        if found is None:
            _restore(child, extracted, display, table)
        restored = child if found is None else _element_for(found, display)
        if mark is not None:
            _set_class(restored, mark)
            mark = None
        children.append(restored)
    element[:] = children


def _extracted_at(element: Element, extracted: list[Extracted]) -> Extracted | None:
    text = element.text or ""
    if not PLACEHOLDER.search(text):
        return None
    if len(text) > 1 or element.tag != "mi":
        raise BadFormula("A text or an operator name is not allowed at this position")
    return extracted[ord(text) - PLACEHOLDER_FIRST]


def _element_for(extracted: Extracted, display: bool) -> Element:
    if isinstance(extracted, OperatorName):
        return _leaf(
            "mo",
            extracted.name,
            movablelimits=str(extracted.with_limits).lower(),
            **{ATOM_CLASS: "op"},
        )
    if isinstance(extracted, ClassedSign):
        return _leaf("mo", extracted.char, **{ATOM_CLASS: extracted.atom_class})
    if isinstance(extracted, PreScripts):
        scripts = Element(PRE_SCRIPTS)
        scripts.append(Element("mrow"))
        scripts.extend(
            _inner_formula(latex, r"\prescript") for latex in (extracted.lower, extracted.upper)
        )
        return scripts
    assert isinstance(extracted, ExtractedText)
    runs = [_text_run(run, display) for run in extracted.runs if run.content]
    if len(runs) == 1:
        return runs[0]
    row = Element("mrow")
    row.extend(runs)
    return row


def _text_run(run: TextRun, display: bool) -> Element:
    if run.is_formula:
        return _inner_formula(run.content, "a text")
    words = run.content
    for plain, typeset in HYPHENS:
        words = words.replace(plain, typeset)
    variant = {"mathvariant": run.variant} if run.variant else {}
    return _leaf("mtext", re.sub(" +", "\u00a0", words), **variant)


def _inner_formula(latex: str, place: str) -> Element:
    """Return a formula that stands inside what was extracted, in text style."""
    if not latex.strip():
        return Element("mrow")
    try:
        inner = _converted(latex, display=False)
    except BadFormula as error:  # its position counts from the start of the inner formula
        raise BadFormula(f"In {place}: {error.message}") from None
    inner.tag, inner.attrib = "mrow", {"displaystyle": "false"}
    return inner


def _set_class(element: Element, mark: ClassMark) -> None:
    """Set the class of an element; the scripts of an operator go above and below it."""
    over = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
    if mark.atom_class == "op" and element.tag in over:
        element.tag = over[element.tag]
    element.set(ATOM_CLASS, mark.atom_class)


def _leaf(tag: str, text: str, **attributes: str) -> Element:
    element = Element(tag, attributes)
    element.text = text
    return element
