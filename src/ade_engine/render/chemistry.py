"""Write chemical formulas and equations (`\\ce` of mhchem) in plain LaTeX.

A formula is read from left to right. What a sign means depends on whether it is attached to an atom
or a closing bracket before it: digits are then a subscript, + and - a charge or a bond; otherwise
digits are an amount, and + joins substances.
"""

from __future__ import annotations

import re

CHARGE = re.compile(r"(\d*[+-])(?=$|[\s\])}\[(,^_])")
AMOUNT = re.compile(r"(\d+)/(\d+)|\d+(?:\.\d+)?")
ARROW = re.compile(r"<=>|<-->|<->|->|<-")
UNEVEN_ARROW = re.compile(r"<=>>|<<=>")
VARIABLE = re.compile(r"[a-z](?=\s|$)")
SCRIPT = re.compile(r"\d*[+-](?=$|[\s\])}\[(,_])|\d+|[a-zA-Z]|[+-]|\.|\*|\\[a-zA-Z]+")
COMMAND = re.compile(r"\\(?:[a-zA-Z]+|.)")
LETTERS = re.compile(r"[A-Z][a-z]?|[a-z]+")
STATE = re.compile(r"\((aq|s|l|g|cr|am|vit|sln)\)")
ARROWS = {
    "->": (r"\longrightarrow ", r"\xrightarrow"),
    "<-": (r"\longleftarrow ", r"\xleftarrow"),
    "<->": (r"\longleftrightarrow ", r"\xleftrightarrow"),
    "<-->": (r"\longleftrightarrow ", r"\xleftrightarrow"),
    "<=>": (r"\xrightleftharpoons{\;\;\;} ", r"\xrightleftharpoons"),
}
BONDS = {"-": r"{-}", "=": r"{=}", "#": r"{\equiv}", "1": r"{-}", "2": r"{=}", "3": r"{\equiv}"}
ADDITION = r"\cdot "
NESTING_MAX = 10


class UnknownChemistry(Exception):
    """The text is not a formula that can be read; the message says why."""


def chemistry_latex(text: str, depth: int = 0) -> str:
    """Return the LaTeX of a chemical formula or equation."""
    if depth > NESTING_MAX:
        raise UnknownChemistry("it is nested too deeply")
    return _Reader(text.strip(), depth).run()


class _Reader:
    """Read a formula; `_attached` tells whether the last sign was an atom or a closing bracket."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self._at = 0
        self._attached = False
        self._output: list[str] = []

    def run(self) -> str:
        while self._at < len(self._text):
            self._step()
        return "".join(self._output)

    def _step(self) -> None:
        sign = self._text[self._at]
        if sign.isspace():
            self._at += 1
            self._attached = False
        elif self._match(UNEVEN_ARROW):
            raise UnknownChemistry("arrows of two lengths (<=>> and <<=>) are not supported")
        elif arrow := self._match(ARROW):
            self._arrow(arrow[0])
        elif sign in "^_":
            self._scripts()
        elif sign in "+-" and self._attached and (charge := self._match(CHARGE)):
            self._emit(f"^{{{charge[1]}}}", attached=False)
        elif sign.isdigit():
            self._digits()
        elif sign in "-=#":
            self._at += 1
            self._emit(BONDS[sign], attached=False)
        elif sign == "+" and self._attached:
            raise UnknownChemistry(
                "a + between atoms is a charge or joins substances: write ^+, or put spaces around"
            )
        elif sign == "+":
            self._at += 1
            self._emit("+", attached=False)
        elif sign in "*.":
            self._at += 1
            self._emit(ADDITION, attached=False)
        elif sign.isalpha():
            self._letters()
        else:
            self._enclosed(sign)

    def _letters(self) -> None:
        variable = None if self._attached else self._match(VARIABLE)
        if variable is not None and variable[0] == "v":
            self._emit(r"\downarrow ", attached=False)
        elif variable is not None:
            self._emit(rf"{variable[0]}\,", attached=False)
        elif letters := self._match(LETTERS):
            self._emit(rf"\mathrm{{{letters[0]}}}", attached=True)
        else:
            raise UnknownChemistry(f"{self._text[self._at]} is not an element")

    def _enclosed(self, sign: str) -> None:
        if state := self._match(STATE):
            self._emit(rf"\,(\mathrm{{{state[1]}}})", attached=True)
        elif sign in "([":
            self._at += 1
            self._emit(sign, attached=False)
        elif sign in ")]":
            self._at += 1
            self._emit(sign, attached=True)
        elif sign == "{":
            self._emit(rf"{{{self._inner(self._braced())}}}", attached=True)
        elif sign == "$":
            end = self._text.find("$", self._at + 1)
            if end < 0:
                raise UnknownChemistry("a $ is never closed")
            formula = self._text[self._at + 1 : end]
            self._at = end + 1
            self._emit(f"{{{formula}}}", attached=True)
        elif command := self._match(COMMAND):
            self._command(command[0])
        elif sign == ",":
            self._at += 1
            self._emit(",", attached=False)
        else:
            raise UnknownChemistry(f"{sign} has no meaning in it")

    def _command(self, command: str) -> None:
        if command != r"\bond":
            self._emit(f"{command} ", attached=command[1:].isalpha())
            return
        kind = self._braced() if self._peek() == "{" else ""
        if kind not in BONDS:
            raise UnknownChemistry(rf"\bond{{{kind}}} is not supported")
        self._emit(BONDS[kind], attached=False)

    def _digits(self) -> None:
        if self._attached:
            number = self._match(re.compile(r"\d+"))
            assert number is not None
            self._emit(f"_{{{number[0]}}}", attached=True)
            return
        amount = self._match(AMOUNT)
        assert amount is not None
        shown = rf"\tfrac{{{amount[1]}}}{{{amount[2]}}}" if amount[1] else amount[0]
        self._emit(rf"{shown}\,", attached=False)

    def _scripts(self) -> None:
        """Read scripts after an atom, or before one (isotopes), or the arrow of a gas."""
        attached = self._attached
        if not attached and self._text[self._at : self._at + 2].strip() == "^":
            self._at += 1
            self._emit(r"\uparrow ", attached=False)
            return
        scripts = {"^": "", "_": ""}
        while self._peek() in scripts and self._peek():
            sign = self._peek()
            self._at += 1
            scripts[sign] += self._script()
        if attached:
            shown = "".join(f"{sign}{{{scripts[sign]}}}" for sign in "_^" if scripts[sign])
            self._emit(shown, attached=True)
            return
        atom = self._match(LETTERS)
        base = rf"\mathrm{{{atom[0]}}}" if atom else "{}"
        shown = rf"\prescript{{{scripts['^']}}}{{{scripts['_']}}}{{{base}}}"
        self._emit(shown, attached=True)

    def _script(self) -> str:
        if self._peek() == "{":
            return re.sub(r"[a-zA-Z]{2,}", r"\\mathrm{\g<0>}", self._braced())
        found = self._match(SCRIPT)
        if found is None:
            raise UnknownChemistry("nothing follows a ^ or _")
        return {".": r"\bullet", "*": r"\ast"}.get(found[0], found[0])

    def _arrow(self, arrow: str) -> None:
        labels: list[str] = []
        while self._peek() == "[" and len(labels) < 2:
            end = self._text.find("]", self._at)
            if end < 0:
                raise UnknownChemistry("the label of an arrow is never closed")
            labels.append(self._inner(self._text[self._at + 1 : end]))
            self._at = end + 1
        plain, labelled = ARROWS[arrow]
        if not labels:
            self._emit(plain, attached=False)
            return
        below = f"[{labels[1]}]" if len(labels) > 1 else ""
        self._emit(f"{labelled}{below}{{{labels[0]}}} ", attached=False)

    def _inner(self, text: str) -> str:
        return chemistry_latex(text, self._depth + 1)

    def _braced(self) -> str:
        """Return the content of the braces that begin here."""
        depth, start = 0, self._at + 1
        while self._at < len(self._text):
            depth += {"{": 1, "}": -1}.get(self._text[self._at], 0)
            self._at += 1
            if depth == 0:
                return self._text[start : self._at - 1]
        raise UnknownChemistry("a brace is never closed")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _emit(self, latex: str, *, attached: bool) -> None:
        self._output.append(latex)
        self._attached = attached
