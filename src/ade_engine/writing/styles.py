"""Number the styles of cells: number format, fill by severity, and the styles of our own sheets.

A cell names its style by number before the sheet is complete. The format of a column's numbers
depends on all of them (`NumberFormat`), so the styles are written when the workbook is closed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from xml.sax.saxutils import quoteattr

import numpy as np

from ade_engine.package.issues import Severity
from ade_engine.sheets.arrays import FloatArray
from ade_engine.writing.fixed_parts import HEAD, MAIN

GENERAL = "General"
DATE_FORMAT = "yyyy\\-mm\\-dd"
MOMENT_FORMAT = "yyyy\\-mm\\-dd\\ hh:mm:ss"
TIME_FORMAT = "hh:mm:ss"
DECIMALS_MAX = 6  # numbers with more decimals are shown as they are

_FIRST_CUSTOM = 164  # numbers below are formats that programs know
_BUILT_IN = {GENERAL: 0, "0": 1, "#,##0": 3, "#,##0.00": 4, TIME_FORMAT: 21}


class Look(StrEnum):
    """What a cell looks like, apart from its number format and its fill."""

    PLAIN = "plain"
    HEADER = "header"
    LINK = "link"
    LITERAL = "literal"  # a text that a program might take for a formula
    DATE = "date"  # on the left: beside a text on the right, it would run into it


class NumberFormat:
    """Choose the format of a column's numbers from all of them: as many decimals as they need."""

    def __init__(self, kind: str, wanted: str = "") -> None:
        self._kind = kind
        self._wanted = wanted
        self.decimals = 0

    @property
    def is_general(self) -> bool:
        """Return whether numbers need no style."""
        return not self._wanted and self._kind not in ("number", "integer")

    def see(self, numbers: FloatArray) -> None:
        """Take note of some numbers of the column; NaN is none."""
        if self._wanted or self._kind != "number":
            return
        while self.decimals <= DECIMALS_MAX:
            scaled = numbers * 10**self.decimals
            # A number like 0.1 is not exact; what differs in the last digits is not a decimal.
            near = np.abs(scaled - np.rint(scaled)) <= np.maximum(np.abs(scaled), 1) * 1e-12
            if (near | ~np.isfinite(numbers)).all():
                return
            self.decimals += 1

    @property
    def code(self) -> str:
        """Return the number format as spreadsheet programs write it."""
        if self._wanted:
            return self._wanted
        if self._kind == "integer":
            return "0"
        if self._kind != "number" or self.decimals > DECIMALS_MAX:
            return GENERAL
        if self.decimals == 0:
            return "#,##0"
        return "#,##0." + "0" * max(self.decimals, 2)


@dataclass(frozen=True)
class Style:
    """What one style consists of."""

    format: str | NumberFormat = GENERAL
    severity: Severity | None = None
    look: Look = Look.PLAIN


class StyleTable:
    """Give each style a number; 0 is the style of a cell that names none."""

    def __init__(self) -> None:
        self._numbers: dict[Style, int] = {}
        self._styles: list[Style] = []
        self.number_of(Style())

    def number_of(self, style: Style) -> int:
        """Return the number of a style."""
        if style not in self._numbers:
            self._numbers[style] = len(self._styles)
            self._styles.append(style)
        return self._numbers[style]

    def filled(self, number: int, severity: Severity) -> int:
        """Return the number of the same style with the fill of a severity, if that is higher."""
        style = self._styles[number]
        if style.severity is not None and _rank(style.severity) <= _rank(severity):
            return number
        return self.number_of(replace(style, severity=severity))

    def xml(self) -> str:
        """Return the part that describes the styles."""
        codes = [_code(style) for style in self._styles]
        custom = list(dict.fromkeys(code for code in codes if code not in _BUILT_IN))
        numbers = _BUILT_IN | {code: _FIRST_CUSTOM + at for at, code in enumerate(custom)}
        formats = "".join(
            f'<numFmt numFmtId="{numbers[code]}" formatCode={quoteattr(code)}/>' for code in custom
        )
        listed = f'<numFmts count="{len(custom)}">{formats}</numFmts>' if custom else ""
        cells = "".join(
            _cell_format(style, numbers[code])
            for style, code in zip(self._styles, codes, strict=True)
        )
        return (
            f'{HEAD}<styleSheet xmlns="{MAIN}">{listed}{_FONTS}{_FILLS}{_BORDERS}'
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>'
            f'</cellStyleXfs><cellXfs count="{len(self._styles)}">{cells}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
            "</styleSheet>"
        )


def _rank(severity: Severity) -> int:
    return list(Severity).index(severity)


def _code(style: Style) -> str:
    return style.format if isinstance(style.format, str) else style.format.code


_FACE = '<name val="Calibri"/><family val="2"/>'
_FONTS = (
    f'<fonts count="3"><font><sz val="11"/>{_FACE}</font>'
    f'<font><b/><sz val="11"/><color rgb="FF1F3864"/>{_FACE}</font>'
    f'<font><u/><sz val="11"/><color rgb="FF0563C1"/>{_FACE}</font></fonts>'
)
_FONT_OF = {Look.HEADER: 1, Look.LINK: 2}

# The fills are those that spreadsheet programs offer for bad, neutral and note.
_COLOURS = ("FFD9E2F3", "FFFFC7CE", "FFFFEB9C", "FFDDEBF7")
_FILLS = (
    f'<fills count="{2 + len(_COLOURS)}"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill>'
    + "".join(
        f'<fill><patternFill patternType="solid"><fgColor rgb="{colour}"/>'
        '<bgColor indexed="64"/></patternFill></fill>'
        for colour in _COLOURS
    )
    + "</fills>"
)
_HEADER_FILL = 2
_FILL_OF = {Severity.ERROR: 3, Severity.WARNING: 4, Severity.INFO: 5}

_BORDERS = (
    '<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border>'
    '<border><left/><right/><top/><bottom style="thin"><color rgb="FF8EA9DB"/></bottom>'
    "<diagonal/></border></borders>"
)


_ALIGNMENTS = {Look.HEADER: 'vertical="center" wrapText="1"', Look.DATE: 'horizontal="left"'}


def _cell_format(style: Style, number_format: int) -> str:
    header = style.look is Look.HEADER
    fill = _HEADER_FILL if header else 0
    if style.severity is not None:
        fill = _FILL_OF[style.severity]
    font, border = _FONT_OF.get(style.look, 0), int(header)
    applied = "".join(
        f' apply{what}="1"'
        for what, used in (("NumberFormat", number_format), ("Font", font), ("Fill", fill))
        if used
    )
    quote = ' quotePrefix="1"' if style.look is Look.LITERAL else ""
    opening = (
        f'<xf numFmtId="{number_format}" fontId="{font}" fillId="{fill}" borderId="{border}"'
        f' xfId="0"{applied}{quote}'
    )
    alignment = _ALIGNMENTS.get(style.look)
    return (
        f'{opening} applyAlignment="1"><alignment {alignment}/></xf>'
        if alignment
        else f"{opening}/>"
    )
