"""Check a formula in LaTeX and prepare it for the converter.

latex2mathml converts LaTeX to MathML. It does not say where a formula is wrong or which commands it
does not know, and it supports texts and operator names only in part. So the source is checked here
first. What the converter cannot read is extracted, and a placeholder (a character of the private
use area) stands for it until `ade_engine.render.mathml` restores it in the tree. Some commands and
environments are renamed to ones that the converter knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain

from ade_engine.render.chemistry import UnknownChemistry, chemistry_latex
from ade_engine.render.color import css_color
from ade_engine.render.extracted import (
    ClassedSign,
    ClassMark,
    DisplayTable,
    Extracted,
    ExtractedText,
    OperatorName,
    PreparedFormula,
    PreScripts,
    TextRun,
)
from ade_engine.render.latex_commands import (
    CLASS_COMMANDS,
    COLOR_ARGUMENTS,
    DEFINING,
    DISPLAY_CASES,
    DROPPED,
    DROPPED_WITH_ARGUMENT,
    ENVIRONMENTS,
    FORBIDDEN,
    LENGTH_ARGUMENTS,
    NEGATED,
    RENAMED,
    TEXT_CASES,
    TEXT_CHARACTERS,
    TEXT_COMMANDS,
    UNITS,
)
from ade_engine.render.latex_tokens import (
    LatexToken,
    environment_name,
    find_token,
    formula_span,
    line_and_column,
    shown_token,
    tokens_of,
)
from ade_engine.render.render_errors import BadFormula, BadPicture
from ade_engine.render.siunitx import (
    UnknownUnit,
    angle_latex,
    number_latex,
    quantity_latex,
    unit_latex,
)

CHARS_MAX = 5_000
DEPTH_MAX = 30
LENGTH_EM_MAX = 100.0
PLACEHOLDER_FIRST = 0xE000
PLACEHOLDERS_MAX = 0x1900  # the size of the private use area
PLACEHOLDER = re.compile("[\ue000-\uf8ff]")

LENGTH = re.compile(r"([+-]?)([0-9]*(?:\.[0-9]*)?)([a-z]{2})")
# Commands that are written in other LaTeX, and how many arguments they have.
EXPANDED: dict[str, tuple[int, Callable[..., str]]] = {
    r"\ce": (1, chemistry_latex),
    **dict.fromkeys((r"\SI", r"\qty"), (2, quantity_latex)),
    **dict.fromkeys((r"\si", r"\unit"), (1, unit_latex)),
    r"\num": (1, number_latex),
    r"\ang": (1, angle_latex),
}


def prepare(latex: str) -> PreparedFormula:
    """Check a formula and prepare it for the converter."""
    if len(latex) > CHARS_MAX:
        raise BadFormula(
            f"The formula has {len(latex):,} characters; at most {CHARS_MAX:,} are allowed"
        )
    if odd := PLACEHOLDER.search(latex) or re.search(r"[\x00-\x08\x0b-\x1f\x7f]", latex):
        raise _bad(
            latex, odd.start(), f"The character U+{ord(odd[0]):04X} is not allowed in a formula"
        )
    start, end = formula_span(latex)
    if not latex[start:end].strip():
        raise BadFormula("The formula is empty")
    return _Preparer(latex, start, end).run()


def _bad(latex: str, at: int, message: str) -> BadFormula:
    line, column = line_and_column(latex, at)
    return BadFormula(message, line=line, column=column)


class _Preparer:
    """Process the tokens in one pass; open groups and environments are on a stack."""

    def __init__(self, latex: str, start: int, end: int) -> None:
        self._latex = latex
        self._tokens: Iterator[LatexToken] = tokens_of(latex, start, end)
        self._open: list[LatexToken] = []
        self._output: list[str] = []
        self._prepared = PreparedFormula()

    def run(self) -> PreparedFormula:
        while (token := next(self._tokens, None)) is not None:
            if token.kind != "comment":
                self._take(token)
        if self._open:
            raise self._bad(self._open[-1], f"{shown_token(self._open[-1])} is never closed")
        self._prepared.latex = "".join(self._output)
        return self._prepared

    def _take(self, token: LatexToken) -> None:
        if token.kind == "row":
            self._emit(r"\\ ")
        elif token.kind == "environment":
            self._environment(token)
        elif token.kind == "command":
            self._command(token)
        else:
            self._sign(token)

    def _sign(self, token: LatexToken) -> None:
        if token.text in NEGATED and self._output and self._output[-1] == r"\not ":
            self._output[-1] = NEGATED[token.text]
            return
        if token.text == "{":
            self._enter(token)
        elif token.text == "}":
            self._leave(token, "{", "}")
        elif token.text == "$":
            raise self._bad(
                token, "A $ is not allowed inside a formula; write \\$ for a dollar sign"
            )
        elif token.text == "&" and not any(one.kind == "environment" for one in self._open):
            raise self._bad(token, "A & is only allowed in a matrix or an alignment")
        elif token.text == "&" and environment_name(self._open[-1]) in TEXT_CASES:
            self._emit("&")
            self._text_cell(token)
            return
        elif token.text == "#":
            raise self._bad(token, "A # is not allowed inside a formula; write \\# for the sign")
        self._emit(token.text)

    def _command(self, token: LatexToken) -> None:
        name = token.text
        if name in TEXT_COMMANDS:
            self._extract(ExtractedText(tuple(self._runs(token, TEXT_COMMANDS[name]))))
        elif name in (r"\operatorname", r"\operatorname*", r"\operatornamewithlimits"):
            self._extract(OperatorName(self._operator(token), name != r"\operatorname"))
        elif name in (r"\tag", r"\tag*"):
            label = self._plain_text(token)
            self._emit(r"\qquad ")
            self._extract(ExtractedText((TextRun(label if name == r"\tag*" else f"({label})"),)))
        elif name in CLASS_COMMANDS:
            self._extract(ClassMark(CLASS_COMMANDS[name]))
        elif name == r"\colon":
            self._extract(ClassedSign(":", "punct"))
        elif name in EXPANDED:
            self._expand(token)
        elif name == r"\prescript":
            upper, lower = self._source(token), self._source(token)
            self._extract(PreScripts(upper, lower))
        elif name in DROPPED_WITH_ARGUMENT:
            self._argument(token)
        elif name in COLOR_ARGUMENTS:
            self._emit_command(token)
            for _ in range(COLOR_ARGUMENTS[name]):
                self._emit(f"{{{self._color(token)}}}")
        elif name in LENGTH_ARGUMENTS:
            self._emit_command(token)
            for _ in range(LENGTH_ARGUMENTS[name]):
                self._emit(f"{{{self._length(token)}}}")
        elif name not in DROPPED:
            self._emit_command(token)

    def _expand(self, token: LatexToken) -> None:
        """Put the LaTeX that a command stands for in front of the remaining tokens."""
        count, write = EXPANDED[token.text]
        arguments = [self._source(token) for _ in range(count)]
        try:
            latex = write(*arguments)
        except (UnknownChemistry, UnknownUnit) as error:
            raise self._bad(token, f"{token.text} cannot be read: {error}") from None
        expanded = (one._replace(at=token.at) for one in tokens_of(latex, 0, len(latex)))
        self._tokens = chain(expanded, self._tokens)

    def _source(self, command: LatexToken) -> str:
        return "".join(token.text for token in self._argument(command) if token.kind != "comment")

    def _emit_command(self, token: LatexToken) -> None:
        """Pass a command on to the converter."""
        if token.text == r"\left":
            self._enter(token)
        elif token.text == r"\right":
            self._leave(token, r"\left", r"\right")
        elif token.text in DEFINING:
            raise self._bad(token, f"{token.text} is not allowed: a formula cannot define commands")
        elif token.text in FORBIDDEN:
            raise self._bad(token, f"{token.text} is not allowed in a formula")
        elif token.text in (r"\(", r"\)", r"\[", r"\]"):
            raise self._bad(token, f"{token.text} is not allowed inside a formula")
        self._emit(RENAMED.get(token.text, token.text) + (" " if token.text[1:].isalpha() else ""))

    def _environment(self, token: LatexToken) -> None:
        verb, _, name = token.text[:-1].partition("{")
        name = name.strip()
        if name not in ENVIRONMENTS:
            raise self._bad(token, f"The environment {name!r} is not known")
        if verb.strip() == r"\begin":
            self._enter(token)
        else:
            self._leave(token, rf"\begin{{{name}}}", token.text)
        if known := ENVIRONMENTS[name]:
            written = rf"{verb.strip()}{{{known}}}"
            # In braces, so that the converter applies an exponent after it to the whole matrix.
            if known.endswith("matrix"):
                written = "{" + written if verb.strip() == r"\begin" else written + "}"
            self._emit(written)
        if name in DISPLAY_CASES and verb.strip() == r"\begin":
            self._extract(DisplayTable())

    def _text_cell(self, sign: LatexToken) -> None:
        """Read the text of the second column of `cases*`, up to the end of its row."""
        inner: list[LatexToken] = []
        while (token := self._next(sign)).kind not in ("row", "environment"):
            if token.text == "&":
                raise self._bad(token, "The environment 'cases*' has two columns")
            inner.append(token)
        while inner and inner[-1].text.isspace():
            inner.pop()
        while inner and inner[0].text.isspace():
            inner.pop(0)
        if inner:
            self._extract(ExtractedText(tuple(self._pieces(inner, ""))))
        self._take(token)

    def _enter(self, token: LatexToken) -> None:
        self._open.append(token)
        if len(self._open) > DEPTH_MAX:
            raise self._bad(token, f"The formula is nested more than {DEPTH_MAX} deep")

    def _leave(self, token: LatexToken, opening: str, closing: str) -> None:
        if not self._open:
            raise self._bad(token, f"{closing} closes nothing")
        last = self._open.pop()
        if re.sub(r"\s", "", last.text) != opening:
            line, column = line_and_column(self._latex, last.at)
            raise self._bad(
                token,
                f"{closing} cannot close {shown_token(last)} of line {line}, column {column}",
            )

    def _extract(self, extracted: Extracted) -> None:
        if len(self._prepared.extracted) == PLACEHOLDERS_MAX:
            raise BadFormula("The formula has too many texts and operator names")
        self._emit(chr(PLACEHOLDER_FIRST + len(self._prepared.extracted)))
        self._prepared.extracted.append(extracted)

    def _argument(self, command: LatexToken) -> list[LatexToken]:
        """Return the tokens between the braces after a command."""
        token = self._past_spaces(command)
        if token.text != "{":
            raise self._bad(command, f"{command.text} needs its content in braces")
        depth = 1
        inner: list[LatexToken] = []
        while True:
            token = self._next(command)
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if depth == 0:
                return inner
            inner.append(token)

    def _next(self, command: LatexToken) -> LatexToken:
        token = next(self._tokens, None)
        if token is None:
            raise self._bad(command, f"The argument of {command.text} is missing or never closed")
        return token

    def _operator(self, command: LatexToken) -> str:
        return "".join(
            {r"\,": "\u2009", r"\ ": " ", r"\-": "", "-": "\u2010"}.get(token.text, token.text)
            for token in self._plain_tokens(command, self._argument(command))
        ).strip()

    def _length(self, command: LatexToken) -> str:
        """Return a length in the only notation that the converter reads completely."""
        match = LENGTH.fullmatch(self._length_text(command))
        if match is None or not match[2].strip(".") or match[3] not in UNITS:
            raise self._bad(command, f"{command.text} needs a number and a unit, such as 2em")
        number = float(match[2])
        if number * UNITS[match[3]] > LENGTH_EM_MAX:
            raise self._bad(command, f"{command.text} can have at most {LENGTH_EM_MAX:g} em")
        return f"{'-' * (match[1] == '-')}{number:.6f}".rstrip("0").rstrip(".") + match[3]

    def _length_text(self, command: LatexToken) -> str:
        """Return the content of the braces after a command, or a length without braces."""
        token = self._past_spaces(command)
        if token.text == "{":
            inner: list[str] = []
            while (token := self._next(command)).text != "}":
                inner.append(token.text)
            return "".join("".join(inner).split())
        length = ""
        while token.text in "+-.0123456789":
            length += token.text
            token = self._past_spaces(command)
        return length + token.text + self._next(command).text

    def _past_spaces(self, command: LatexToken) -> LatexToken:
        token = self._next(command)
        while token.kind == "comment" or token.text.isspace():
            token = self._next(command)
        return token

    def _color(self, command: LatexToken) -> str:
        color = "".join(token.text for token in self._argument(command))
        try:
            return css_color(color)
        except BadPicture as error:
            raise self._bad(command, error.message) from None

    def _plain_text(self, command: LatexToken) -> str:
        return "".join(token.text for token in self._plain_tokens(command, self._argument(command)))

    def _plain_tokens(self, command: LatexToken, tokens: list[LatexToken]) -> Iterator[LatexToken]:
        for token in tokens:
            sign = token.kind == "sign" and token.text not in "{}$^_&#"
            if sign or token.text in (r"\,", r"\ ", r"\-"):
                yield token
            elif token.text not in ("{", "}", r"\mathrm", *TEXT_COMMANDS):
                raise self._bad(token, f"{token.text} is not allowed in {command.text}")

    def _runs(self, command: LatexToken, variant: str) -> Iterator[TextRun]:
        """Split a text into characters, inner formulas and texts in another variant."""
        yield from self._pieces(self._argument(command), variant)

    def _pieces(self, tokens: list[LatexToken], variant: str) -> Iterator[TextRun]:
        letters: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.text == "$" or token.text == r"\(":
                closing = "$" if token.text == "$" else r"\)"
                end = find_token(tokens, closing, at)
                if end is None:
                    raise self._bad(token, f"{token.text} in a text is never closed")
                yield TextRun("".join(letters), variant)
                yield TextRun("".join(one.text for one in tokens[at:end]), is_formula=True)
                letters, at = [], end + 1
            elif token.text in TEXT_COMMANDS:
                end = self._closing(token, tokens, at)
                yield TextRun("".join(letters), variant)
                yield from self._pieces(tokens[at + 1 : end], TEXT_COMMANDS[token.text] or variant)
                letters, at = [], end + 1
            else:
                letters.append(self._letter(token))
        yield TextRun("".join(letters), variant)

    def _closing(self, command: LatexToken, tokens: list[LatexToken], opening: int) -> int:
        """Return the index of the brace that closes the one at `opening`; braces are balanced."""
        if opening == len(tokens) or tokens[opening].text != "{":
            raise self._bad(command, f"{command.text} needs its content in braces")
        depth = 0
        for at in range(opening, len(tokens)):
            depth += {"{": 1, "}": -1}.get(tokens[at].text, 0)
            if depth == 0:
                break
        return at

    def _letter(self, token: LatexToken) -> str:
        if token.kind == "comment" or token.text in "{}":
            return ""
        if token.kind == "sign":
            return {"~": "\u00a0"}.get(token.text, " " if token.text.isspace() else token.text)
        if token.text not in TEXT_CHARACTERS:
            raise self._bad(token, f"{token.text} is not allowed in a text")
        return TEXT_CHARACTERS[token.text]

    def _emit(self, latex: str) -> None:
        self._output.append(latex)

    def _bad(self, token: LatexToken, message: str) -> BadFormula:
        return _bad(self._latex, token.at, message)
