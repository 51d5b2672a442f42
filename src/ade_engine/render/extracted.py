"""What is extracted from a formula in LaTeX, because the converter cannot read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class TextRun(NamedTuple):
    """A part of a text: characters in one variant, or an inner formula."""

    content: str
    variant: str = ""
    is_formula: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """A text in a formula (`\\text`)."""

    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True)
class OperatorName:
    """The name of an operator; `with_limits` sets its scripts above and below."""

    name: str
    with_limits: bool


@dataclass(frozen=True, slots=True)
class ClassMark:
    """Set the class of the following atom, which determines the space around it."""

    atom_class: str


@dataclass(frozen=True, slots=True)
class ClassedSign:
    """A sign with another class than it usually has."""

    char: str
    atom_class: str


@dataclass(frozen=True, slots=True)
class PreScripts:
    """Scripts in LaTeX before the following atom (`\\prescript`)."""

    upper: str
    lower: str


@dataclass(frozen=True, slots=True)
class DisplayTable:
    """Set the cells of the table around it in display style (`dcases`)."""


Extracted = ExtractedText | OperatorName | ClassMark | ClassedSign | PreScripts | DisplayTable


@dataclass(slots=True)
class PreparedFormula:
    """A formula that the converter can read, and what was extracted from it."""

    latex: str = ""
    extracted: list[Extracted] = field(default_factory=list)
