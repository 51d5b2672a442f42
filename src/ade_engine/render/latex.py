"""Read a formula as people write it: refuse what is wrong, take out what the converter cannot read.

latex2mathml turns LaTeX into MathML. It does not say where a formula is wrong nor which commands it
does not know, and it reads texts and names of operators only in part. So the source is read here
first. What the converter cannot read is taken out, and a sign of the private use area is left in
its place; `ade_engine.render.mathml` puts it back into the tree. Besides, a few names are changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ade_engine.render.color import css_color
from ade_engine.render.latex_commands import (
    COLORS,
    DEFINING,
    DROPPED,
    DROPPED_WITH_ARGUMENT,
    ENVIRONMENTS,
    IN_TEXT,
    LENGTHS,
    MARKS,
    NEGATED,
    REFUSED,
    RENAMED,
    TEXTS,
    UNITS,
)
from ade_engine.render.render_errors import BadFormula, BadPicture

CHARS_MAX = 5_000
DEPTH_MAX = 30
LENGTH_EM_MAX = 100.0
HELD_FIRST = 0xE000
HELD_MAX = 0x1900  # as many signs as the private use area has
HELD = re.compile("[\ue000-\uf8ff]")

TOKEN = re.compile(
    r"(?P<comment>%[^\n]*\n?)"
    r"|(?P<row>\\\\\*?(?:\[\s*-?[\d.]+\s*[a-z]{2}\s*\])?)"
    r"|(?P<environment>\\(?:begin|end)\s*\{[^{}\\]*\})"
    r"|(?P<command>\\(?:operatorname\*|tag\*|hspace\*|[a-zA-Z]+|.))"
    r"|(?P<sign>.)",
    re.DOTALL,
)
LENGTH = re.compile(r"([+-]?)([0-9]*(?:\.[0-9]*)?)([a-z]{2})")
WRAPPED = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))


class Run(NamedTuple):
    """A piece of a text: letters of one kind, or a formula among them."""

    content: str
    variant: str = ""
    is_formula: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Words in a formula."""

    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """The name of an operator; one `with_limits` has them below it."""

    name: str
    with_limits: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """Say as what the following counts when space is set around it."""

    spaced_as: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign that counts as something else than it usually does."""

    char: str
    spaced_as: str


Held = Text | Operator | Mark | Sign


@dataclass(slots=True)
class Source:
    """Hold a formula that the converter can read, and what was taken out of it."""

    latex: str = ""
    held: list[Held] = field(default_factory=list)


class Token(NamedTuple):
    """A piece of a formula: a comment, the end of a row, a command, or one sign."""

    kind: str
    text: str
    at: int


def read(latex: str) -> Source:
    """Check a formula and prepare it for the converter."""
    if len(latex) > CHARS_MAX:
        raise BadFormula(f"The formula has {len(latex):,} characters; there can be {CHARS_MAX:,}")
    if odd := HELD.search(latex) or re.search(r"[\x00-\x08\x0b-\x1f\x7f]", latex):
        raise _bad(latex, odd.start(), f"The character U+{ord(odd[0]):04X} has no meaning here")
    start, end = _inside(latex)
    if not latex[start:end].strip():
        raise BadFormula("The formula is empty")
    return _Reader(latex, start, end).source()


def place(latex: str, at: int) -> tuple[int, int]:
    """Return line and column of a character, both from 1."""
    before = latex[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _bad(latex: str, at: int, message: str) -> BadFormula:
    line, column = place(latex, at)
    return BadFormula(message, line=line, column=column)


def _inside(latex: str) -> tuple[int, int]:
    """Leave out what tells a document that a formula begins: people copy it along."""
    start, end = len(latex) - len(latex.lstrip()), len(latex.rstrip())
    for opening, closing in WRAPPED:
        whole = latex[start:end]
        inner = whole[len(opening) : -len(closing)]
        if whole.startswith(opening) and whole.endswith(closing) and opening not in inner:
            return (start + len(opening), end - len(closing)) if inner else (start, end)
    return start, end


class _Reader:
    """Go through the tokens once; what is open is on a stack."""

    def __init__(self, latex: str, start: int, end: int) -> None:
        self._latex = latex
        self._tokens = _tokens(latex, start, end)
        self._open: list[Token] = []
        self._said: list[str] = []
        self._source = Source()

    def source(self) -> Source:
        for token in self._tokens:
            if token.kind != "comment":
                self._take(token)
        if self._open:
            raise self._bad(self._open[-1], f"{_shown(self._open[-1])} is never closed")
        self._source.latex = "".join(self._said)
        return self._source

    def _take(self, token: Token) -> None:
        if token.kind == "row":
            self._say(r"\\ ")
        elif token.kind == "environment":
            self._environment(token)
        elif token.kind == "command":
            self._command(token)
        else:
            self._sign(token)

    def _sign(self, token: Token) -> None:
        if token.text in NEGATED and self._said and self._said[-1] == r"\not ":
            self._said[-1] = NEGATED[token.text]
            return
        if token.text == "{":
            self._enter(token)
        elif token.text == "}":
            self._leave(token, "{", "}")
        elif token.text == "$":
            raise self._bad(token, "A $ within a formula means nothing; for the sign write \\$")
        elif token.text == "&" and not any(one.kind == "environment" for one in self._open):
            raise self._bad(token, "A & outside of a matrix or an alignment means nothing")
        elif token.text == "#":
            raise self._bad(token, "A # within a formula means nothing; for the sign write \\#")
        self._say(token.text)

    def _command(self, token: Token) -> None:
        name = token.text
        if name in TEXTS:
            self._hold(Text(tuple(self._runs(token, TEXTS[name]))))
        elif name in (r"\operatorname", r"\operatorname*", r"\operatornamewithlimits"):
            self._hold(Operator(self._operator(token), name != r"\operatorname"))
        elif name in (r"\tag", r"\tag*"):
            words = self._words(token)
            self._say(r"\qquad ")
            self._hold(Text((Run(words if name == r"\tag*" else f"({words})"),)))
        elif name in MARKS:
            self._hold(Mark(MARKS[name]))
        elif name == r"\colon":
            self._hold(Sign(":", "punct"))
        elif name in DROPPED_WITH_ARGUMENT:
            self._argument(token)
        elif name in COLORS:
            self._pass(token)
            for _ in range(COLORS[name]):
                self._say(f"{{{self._color(token)}}}")
        elif name in LENGTHS:
            self._pass(token)
            for _ in range(LENGTHS[name]):
                self._say(f"{{{self._length(token)}}}")
        elif name not in DROPPED:
            self._pass(token)

    def _pass(self, token: Token) -> None:
        """Hand a command on to the converter."""
        if token.text == r"\left":
            self._enter(token)
        elif token.text == r"\right":
            self._leave(token, r"\left", r"\right")
        elif token.text in DEFINING:
            raise self._bad(token, f"{token.text}: commands cannot be defined in a formula")
        elif token.text in REFUSED:
            raise self._bad(token, f"{token.text} is not allowed in a formula")
        elif token.text in (r"\(", r"\)", r"\[", r"\]"):
            raise self._bad(token, f"{token.text} within a formula means nothing")
        self._say(RENAMED.get(token.text, token.text) + (" " if token.text[1:].isalpha() else ""))

    def _environment(self, token: Token) -> None:
        verb, _, name = token.text[:-1].partition("{")
        name = name.strip()
        if name not in ENVIRONMENTS:
            raise self._bad(token, f"The environment {name!r} is not known")
        if verb.strip() == r"\begin":
            self._enter(token)
        else:
            self._leave(token, rf"\begin{{{name}}}", token.text)
        if known := ENVIRONMENTS[name]:
            said = rf"{verb.strip()}{{{known}}}"
            # In braces: the converter does not know what an exponent behind a matrix belongs to.
            if known.endswith("matrix"):
                said = "{" + said if verb.strip() == r"\begin" else said + "}"
            self._say(said)

    def _enter(self, token: Token) -> None:
        self._open.append(token)
        if len(self._open) > DEPTH_MAX:
            raise self._bad(token, f"The formula is nested more than {DEPTH_MAX} deep")

    def _leave(self, token: Token, opening: str, closing: str) -> None:
        if not self._open:
            raise self._bad(token, f"{closing} closes nothing")
        last = self._open.pop()
        if re.sub(r"\s", "", last.text) != opening:
            line, column = place(self._latex, last.at)
            raise self._bad(
                token,
                f"{closing} cannot close {_shown(last)} of line {line}, column {column}",
            )

    def _hold(self, held: Held) -> None:
        if len(self._source.held) == HELD_MAX:
            raise BadFormula("The formula holds too many texts")
        self._say(chr(HELD_FIRST + len(self._source.held)))
        self._source.held.append(held)

    def _argument(self, command: Token) -> list[Token]:
        """Return what stands between the braces after a command."""
        token = self._past_spaces(command)
        if token.text != "{":
            raise self._bad(command, f"{command.text} needs its content in braces")
        depth = 1
        inner: list[Token] = []
        while True:
            token = self._next(command)
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if depth == 0:
                return inner
            inner.append(token)

    def _next(self, command: Token) -> Token:
        token = next(self._tokens, None)
        if token is None:
            raise self._bad(command, f"The argument of {command.text} is missing or never closed")
        return token

    def _operator(self, command: Token) -> str:
        return "".join(
            {r"\,": "\u2009", r"\ ": " ", r"\-": "", "-": "\u2010"}.get(token.text, token.text)
            for token in self._plain(command, self._argument(command))
        ).strip()

    def _length(self, command: Token) -> str:
        """Return a length in the one way of writing it that the converter reads whole."""
        told = LENGTH.fullmatch(self._length_told(command))
        if told is None or not told[2].strip(".") or told[3] not in UNITS:
            raise self._bad(command, f"{command.text} needs a number and a unit, such as 2em")
        number = float(told[2])
        if number * UNITS[told[3]] > LENGTH_EM_MAX:
            raise self._bad(command, f"{command.text} can be {LENGTH_EM_MAX:g} em at most")
        return f"{'-' * (told[1] == '-')}{number:.6f}".rstrip("0").rstrip(".") + told[3]

    def _length_told(self, command: Token) -> str:
        """Take what is in the braces after a command, or as much as a length can be."""
        token = self._past_spaces(command)
        if token.text == "{":
            inner: list[str] = []
            while (token := self._next(command)).text != "}":
                inner.append(token.text)
            return "".join("".join(inner).split())
        told = ""
        while token.text in "+-.0123456789":
            told += token.text
            token = self._past_spaces(command)
        return told + token.text + self._next(command).text

    def _past_spaces(self, command: Token) -> Token:
        token = self._next(command)
        while token.kind == "comment" or token.text.isspace():
            token = self._next(command)
        return token

    def _color(self, command: Token) -> str:
        asked = "".join(token.text for token in self._argument(command))
        try:
            return css_color(asked)
        except BadPicture as error:
            raise self._bad(command, error.message) from None

    def _words(self, command: Token) -> str:
        return "".join(token.text for token in self._plain(command, self._argument(command)))

    def _plain(self, command: Token, tokens: list[Token]) -> Iterator[Token]:
        for token in tokens:
            sign = token.kind == "sign" and token.text not in "{}$^_&#"
            if sign or token.text in (r"\,", r"\ ", r"\-"):
                yield token
            elif token.text not in ("{", "}", r"\mathrm", *TEXTS):
                raise self._bad(token, f"{token.text} cannot stand in {command.text}")

    def _runs(self, command: Token, variant: str) -> Iterator[Run]:
        """Take a text apart: letters, formulas between dollars, and texts of another kind."""
        yield from self._pieces(self._argument(command), variant)

    def _pieces(self, tokens: list[Token], variant: str) -> Iterator[Run]:
        letters: list[str] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.text == "$" or token.text == r"\(":
                closing = "$" if token.text == "$" else r"\)"
                end = _find(tokens, closing, at)
                if end is None:
                    raise self._bad(token, f"{token.text} within a text is never closed")
                yield Run("".join(letters), variant)
                yield Run("".join(one.text for one in tokens[at:end]), is_formula=True)
                letters, at = [], end + 1
            elif token.text in TEXTS:
                end = self._closing(token, tokens, at)
                yield Run("".join(letters), variant)
                yield from self._pieces(tokens[at + 1 : end], TEXTS[token.text] or variant)
                letters, at = [], end + 1
            else:
                letters.append(self._letter(token))
        yield Run("".join(letters), variant)

    def _closing(self, command: Token, tokens: list[Token], opening: int) -> int:
        """Return where the braces that open here are closed; they are balanced."""
        if opening == len(tokens) or tokens[opening].text != "{":
            raise self._bad(command, f"{command.text} needs its content in braces")
        depth = 0
        for at in range(opening, len(tokens)):
            depth += {"{": 1, "}": -1}.get(tokens[at].text, 0)
            if depth == 0:
                break
        return at

    def _letter(self, token: Token) -> str:
        if token.kind == "comment" or token.text in "{}":
            return ""
        if token.kind == "sign":
            return {"~": "\u00a0"}.get(token.text, " " if token.text.isspace() else token.text)
        if token.text not in IN_TEXT:
            raise self._bad(token, f"{token.text} cannot stand in a text")
        return IN_TEXT[token.text]

    def _say(self, latex: str) -> None:
        self._said.append(latex)

    def _bad(self, token: Token, message: str) -> BadFormula:
        return _bad(self._latex, token.at, message)


def _tokens(latex: str, start: int, end: int) -> Iterator[Token]:
    for match in TOKEN.finditer(latex, start, end):
        yield Token(match.lastgroup or "", match[0], match.start())


def _find(tokens: list[Token], text: str, start: int) -> int | None:
    return next((at for at in range(start, len(tokens)) if tokens[at].text == text), None)


def _shown(token: Token) -> str:
    return re.sub(r"\s", "", token.text)
